// SPDX-License-Identifier: Apache-2.0
// Fuzz target: Java properties text, read, written and read again to the same; and a node's configuration
// made of it.
#include "core/base/assert.h"
#include "core/base/properties.h"
#include "core/config/server_config.h"
#include "core/config/values.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct properties p, again;
    struct strbuf text;
    struct errmsg msg;
    properties_init(&p);
    if (properties_parse(&p, slice_of(data, size), &msg) == 0) {
        strbuf_init(&text);
        properties_init(&again);
        properties_write(&text, &p);
        MUST(properties_parse(&again, strbuf_slice(&text), &msg) == 0);
        MUST(again.count == p.count);
        for (size_t i = 0; i < p.count; i++) {
            MUST(slice_equal(again.items[i].key, p.items[i].key));
            MUST(slice_equal(again.items[i].value, p.items[i].value));
        }
        properties_fini(&again);
        strbuf_fini(&text);
    }
    properties_fini(&p);

    struct config_values values;
    struct server_config *config = NULL;
    config_values_init(&values);
    if (config_values_add_file(&values, slice_of(data, size), &msg) == 0) {
        (void)server_config_make(&values, NULL, &config, &msg);
        server_config_free(config);
    }
    config_values_fini(&values);
    return 0;
}
