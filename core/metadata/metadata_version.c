// SPDX-License-Identifier: Apache-2.0
// The tables of metadata versions and feature levels.
#include "core/metadata/metadata_version.h"

#include <stddef.h>

// level, name, changes metadata, RegisterBroker, BrokerRegistrationChange, Partition, PartitionChange, Fetch,
// ListOffsets
static const struct metadata_version versions[] = {
    {7, "3.3-IV3", false, 1, 1, 0, 0, 13, 7},   {8, "3.4-IV0", true, 2, 1, 0, 0, 13, 7},
    {9, "3.5-IV0", false, 2, 1, 0, 0, 14, 8},   {10, "3.5-IV1", false, 2, 1, 0, 0, 15, 8},
    {11, "3.5-IV2", true, 2, 1, 0, 0, 15, 8},   {12, "3.6-IV0", false, 2, 1, 0, 0, 15, 8},
    {13, "3.6-IV1", true, 2, 1, 0, 0, 15, 8},   {14, "3.6-IV2", true, 2, 1, 0, 0, 15, 8},
    {15, "3.7-IV0", true, 2, 1, 0, 0, 15, 8},   {16, "3.7-IV1", false, 2, 1, 0, 0, 15, 8},
    {17, "3.7-IV2", true, 3, 2, 1, 1, 15, 8},   {18, "3.7-IV3", false, 3, 2, 1, 1, 15, 8},
    {19, "3.7-IV4", false, 3, 2, 1, 1, 16, 8},  {20, "3.8-IV0", false, 3, 2, 1, 1, 16, 8},
    {21, "3.9-IV0", false, 3, 2, 1, 1, 17, 9},  {22, "4.0-IV0", false, 3, 2, 1, 1, 17, 9},
    {23, "4.0-IV1", true, 3, 2, 2, 2, 17, 9},   {24, "4.0-IV2", false, 3, 2, 2, 2, 17, 9},
    {25, "4.0-IV3", false, 3, 2, 2, 2, 17, 10}, {26, "4.1-IV0", false, 3, 2, 2, 2, 17, 10},
    {27, "4.1-IV1", false, 3, 2, 2, 2, 18, 10}, {28, "4.2-IV0", false, 3, 2, 2, 2, 18, 10},
    {29, "4.2-IV1", false, 3, 2, 2, 2, 18, 11}, {30, "4.3-IV0", true, 4, 3, 2, 2, 18, 11},
    {31, "4.4-IV0", false, 4, 3, 2, 2, 18, 11}, {32, "4.4-IV1", true, 4, 3, 2, 2, 18, 11},
    {33, "4.4-IV2", true, 4, 3, 2, 2, 18, 11},
};
_Static_assert(sizeof versions / sizeof versions[0] == METADATA_VERSION_MAX - METADATA_VERSION_MIN + 1,
               "one row a level");

static const struct feature_range ranges[] = {
    {"eligible.leader.replicas.version", 0, 1},
    {"group.version", 0, 1},
    {"kraft.version", 0, 1},
    {"metadata.version", METADATA_VERSION_MIN, METADATA_VERSION_MAX},
    {"share.version", 0, 2},
    {"streams.version", 0, 1},
    {"transaction.version", 0, 2},
};

// name, level, metadata.version from which it is the default, metadata.version that it needs
static const struct feature_level levels[] = {
    {"kraft.version", 0, 7, 0},
    {"kraft.version", 1, 21, 0},
    {"transaction.version", 0, 7, 0},
    {"transaction.version", 1, 24, 0},
    {"transaction.version", 2, 24, 0},
    {"group.version", 0, 7, 0},
    {"group.version", 1, 22, 0},
    {"eligible.leader.replicas.version", 0, 7, 0},
    {"eligible.leader.replicas.version", 1, 26, 23},
    {"share.version", 0, 7, 0},
    {"share.version", 1, 28, 0},
    {"share.version", 2, 31, 0},
    {"streams.version", 0, 7, 0},
    {"streams.version", 1, 29, 0},
};

const struct metadata_version *metadata_version_of(int16_t level)
{
    if (level < METADATA_VERSION_MIN || level > METADATA_VERSION_MAX)
        return NULL;
    return &versions[level - METADATA_VERSION_MIN];
}

const struct metadata_version *metadata_version_writing(int16_t level)
{
    const struct metadata_version *v = metadata_version_of(level);
    return v ? v : &versions[0];
}

int16_t metadata_version_parse(struct slice text)
{
    int16_t newest = 0;
    for (size_t i = 0; i < sizeof versions / sizeof versions[0]; i++) {
        struct slice name = slice_str(versions[i].name);
        if (slice_equal(name, text))
            return versions[i].level;
        if (text.len > 0 && text.len < name.len && name.data[text.len] == '-' &&
            memcmp(name.data, text.data, text.len) == 0)
            newest = versions[i].level;
    }
    return newest;
}

const struct feature_range *feature_ranges(int32_t *count)
{
    *count = (int32_t)(sizeof ranges / sizeof ranges[0]);
    return ranges;
}

const struct feature_range *feature_range_of(struct slice name)
{
    for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++)
        if (slice_equal_str(name, ranges[i].name))
            return &ranges[i];
    return NULL;
}

const struct feature_level *feature_level_of(struct slice name, int16_t level)
{
    for (size_t i = 0; i < sizeof levels / sizeof levels[0]; i++)
        if (slice_equal_str(name, levels[i].name) && levels[i].level == level)
            return &levels[i];
    return NULL;
}

int16_t feature_default(struct slice name, int16_t metadata_version)
{
    int16_t best = 0;
    for (size_t i = 0; i < sizeof levels / sizeof levels[0]; i++)
        if (slice_equal_str(name, levels[i].name) && levels[i].bootstrap <= metadata_version &&
            levels[i].level > best)
            best = levels[i].level;
    return best;
}
