// SPDX-License-Identifier: Apache-2.0
// The authorizer's place, and the table of what each API needs.
#include "core/security/authorize.h"

#include <stddef.h>

struct api_row {
    int16_t api_key;                                  // enum kp_api
    int16_t count;                                    // lines in use
    struct api_permission lines[API_PERMISSIONS_MAX]; // what it asks for
};

// Sorted by key; APIs that ask nothing are left out.
static const struct api_row rows[] = {
    {0,
     3,
     {{ACL_WRITE, ACL_TRANSACTIONAL_ID},
      {ACL_IDEMPOTENT_WRITE, ACL_CLUSTER},
      {ACL_WRITE, ACL_TOPIC}}},                                                              // Produce
    {1, 2, {{ACL_CLUSTER_ACTION, ACL_CLUSTER}, {ACL_READ, ACL_TOPIC}}},                      // Fetch
    {2, 1, {{ACL_DESCRIBE, ACL_TOPIC}}},                                                     // ListOffsets
    {3, 3, {{ACL_DESCRIBE, ACL_TOPIC}, {ACL_CREATE, ACL_CLUSTER}, {ACL_CREATE, ACL_TOPIC}}}, // Metadata
    {8, 2, {{ACL_READ, ACL_GROUP}, {ACL_READ, ACL_TOPIC}}},                                  // OffsetCommit
    {9, 2, {{ACL_DESCRIBE, ACL_GROUP}, {ACL_DESCRIBE, ACL_TOPIC}}},                          // OffsetFetch
    {10, 2, {{ACL_DESCRIBE, ACL_GROUP}, {ACL_DESCRIBE, ACL_TRANSACTIONAL_ID}}},        // FindCoordinator
    {11, 1, {{ACL_READ, ACL_GROUP}}},                                                  // JoinGroup
    {12, 1, {{ACL_READ, ACL_GROUP}}},                                                  // Heartbeat
    {13, 1, {{ACL_READ, ACL_GROUP}}},                                                  // LeaveGroup
    {14, 1, {{ACL_READ, ACL_GROUP}}},                                                  // SyncGroup
    {15, 1, {{ACL_DESCRIBE, ACL_GROUP}}},                                              // DescribeGroups
    {16, 2, {{ACL_DESCRIBE, ACL_CLUSTER}, {ACL_DESCRIBE, ACL_GROUP}}},                 // ListGroups
    {19, 2, {{ACL_CREATE, ACL_CLUSTER}, {ACL_CREATE, ACL_TOPIC}}},                     // CreateTopics
    {20, 1, {{ACL_DELETE, ACL_TOPIC}}},                                                // DeleteTopics
    {21, 1, {{ACL_DELETE, ACL_TOPIC}}},                                                // DeleteRecords
    {22, 2, {{ACL_WRITE, ACL_TRANSACTIONAL_ID}, {ACL_IDEMPOTENT_WRITE, ACL_CLUSTER}}}, // InitProducerId
    {23, 2, {{ACL_CLUSTER_ACTION, ACL_CLUSTER}, {ACL_DESCRIBE, ACL_TOPIC}}},           // OffsetForLeaderEpoch
    {24, 2, {{ACL_WRITE, ACL_TRANSACTIONAL_ID}, {ACL_WRITE, ACL_TOPIC}}},              // AddPartitionsToTxn
    {25, 2, {{ACL_WRITE, ACL_TRANSACTIONAL_ID}, {ACL_READ, ACL_GROUP}}},               // AddOffsetsToTxn
    {26, 1, {{ACL_WRITE, ACL_TRANSACTIONAL_ID}}},                                      // EndTxn
    {27, 2, {{ACL_ALTER, ACL_CLUSTER}, {ACL_CLUSTER_ACTION, ACL_CLUSTER}}},            // WriteTxnMarkers
    {28,
     3,
     {{ACL_WRITE, ACL_TRANSACTIONAL_ID}, {ACL_READ, ACL_GROUP}, {ACL_READ, ACL_TOPIC}}}, // TxnOffsetCommit
    {29, 1, {{ACL_DESCRIBE, ACL_CLUSTER}}},                                              // DescribeAcls
    {30, 1, {{ACL_ALTER, ACL_CLUSTER}}},                                                 // CreateAcls
    {31, 1, {{ACL_ALTER, ACL_CLUSTER}}},                                                 // DeleteAcls
    {32, 2, {{ACL_DESCRIBE_CONFIGS, ACL_CLUSTER}, {ACL_DESCRIBE_CONFIGS, ACL_TOPIC}}},   // DescribeConfigs
    {33, 2, {{ACL_ALTER_CONFIGS, ACL_CLUSTER}, {ACL_ALTER_CONFIGS, ACL_TOPIC}}},         // AlterConfigs
    {34, 1, {{ACL_ALTER, ACL_CLUSTER}}},      // AlterReplicaLogDirs
    {35, 1, {{ACL_DESCRIBE, ACL_CLUSTER}}},   // DescribeLogDirs
    {37, 1, {{ACL_ALTER, ACL_TOPIC}}},        // CreatePartitions
    {38, 1, {{ACL_CREATE_TOKENS, ACL_USER}}}, // CreateDelegationToken
    {41,
     2,
     {{ACL_DESCRIBE, ACL_DELEGATION_TOKEN}, {ACL_DESCRIBE_TOKENS, ACL_USER}}},   // DescribeDelegationToken
    {42, 1, {{ACL_DELETE, ACL_GROUP}}},                                          // DeleteGroups
    {43, 1, {{ACL_CLUSTER_ACTION, ACL_CLUSTER}}},                                // ElectLeaders
    {44, 2, {{ACL_ALTER_CONFIGS, ACL_CLUSTER}, {ACL_ALTER_CONFIGS, ACL_TOPIC}}}, // IncrementalAlterConfigs
    {45, 1, {{ACL_ALTER, ACL_CLUSTER}}},                       // AlterPartitionReassignments
    {46, 1, {{ACL_DESCRIBE, ACL_CLUSTER}}},                    // ListPartitionReassignments
    {47, 2, {{ACL_DELETE, ACL_GROUP}, {ACL_READ, ACL_TOPIC}}}, // OffsetDelete
    {48, 1, {{ACL_DESCRIBE_CONFIGS, ACL_CLUSTER}}},            // DescribeClientQuotas
    {49, 1, {{ACL_ALTER_CONFIGS, ACL_CLUSTER}}},               // AlterClientQuotas
    {50, 1, {{ACL_DESCRIBE, ACL_CLUSTER}}},                    // DescribeUserScramCredentials
    {51, 1, {{ACL_ALTER, ACL_CLUSTER}}},                       // AlterUserScramCredentials
    {52, 1, {{ACL_CLUSTER_ACTION, ACL_CLUSTER}}},              // Vote
    {53, 1, {{ACL_CLUSTER_ACTION, ACL_CLUSTER}}},              // BeginQuorumEpoch
    {54, 1, {{ACL_CLUSTER_ACTION, ACL_CLUSTER}}},              // EndQuorumEpoch
    {55, 1, {{ACL_DESCRIBE, ACL_CLUSTER}}},                    // DescribeQuorum
    {56, 1, {{ACL_CLUSTER_ACTION, ACL_CLUSTER}}},              // AlterPartition
    {57, 1, {{ACL_ALTER, ACL_CLUSTER}}},                       // UpdateFeatures
    {58, 1, {{ACL_CLUSTER_ACTION, ACL_CLUSTER}}},              // Envelope
    {59, 1, {{ACL_CLUSTER_ACTION, ACL_CLUSTER}}},              // FetchSnapshot
    {60, 1, {{ACL_DESCRIBE, ACL_CLUSTER}}},                    // DescribeCluster
    {61, 1, {{ACL_READ, ACL_TOPIC}}},                          // DescribeProducers
    {62, 1, {{ACL_CLUSTER_ACTION, ACL_CLUSTER}}},              // BrokerRegistration
    {63, 1, {{ACL_CLUSTER_ACTION, ACL_CLUSTER}}},              // BrokerHeartbeat
    {64, 1, {{ACL_ALTER, ACL_CLUSTER}}},                       // UnregisterBroker
    {65, 1, {{ACL_DESCRIBE, ACL_TRANSACTIONAL_ID}}},           // DescribeTransactions
    {66, 1, {{ACL_DESCRIBE, ACL_TRANSACTIONAL_ID}}},           // ListTransactions
    {67, 1, {{ACL_CLUSTER_ACTION, ACL_CLUSTER}}},              // AllocateProducerIds
    {68, 1, {{ACL_READ, ACL_GROUP}}},                          // ConsumerGroupHeartbeat
    {69, 1, {{ACL_DESCRIBE, ACL_GROUP}}},                      // ConsumerGroupDescribe
    {70, 1, {{ACL_CLUSTER_ACTION, ACL_CLUSTER}}},              // ControllerRegistration
    {73, 1, {{ACL_CLUSTER_ACTION, ACL_CLUSTER}}},              // AssignReplicasToDirs
    {74, 1, {{ACL_DESCRIBE_CONFIGS, ACL_CLUSTER}}},            // ListConfigResources
    {75, 1, {{ACL_DESCRIBE, ACL_TOPIC}}},                      // DescribeTopicPartitions
    {76, 1, {{ACL_READ, ACL_GROUP}}},                          // ShareGroupHeartbeat
    {77, 1, {{ACL_DESCRIBE, ACL_GROUP}}},                      // ShareGroupDescribe
    {78, 2, {{ACL_READ, ACL_GROUP}, {ACL_READ, ACL_TOPIC}}},   // ShareFetch
    {79, 2, {{ACL_READ, ACL_GROUP}, {ACL_READ, ACL_TOPIC}}},   // ShareAcknowledge
    {83, 1, {{ACL_CLUSTER_ACTION, ACL_CLUSTER}}},              // InitializeShareGroupState
    {84, 1, {{ACL_CLUSTER_ACTION, ACL_CLUSTER}}},              // ReadShareGroupState
    {85, 1, {{ACL_CLUSTER_ACTION, ACL_CLUSTER}}},              // WriteShareGroupState
    {86, 1, {{ACL_CLUSTER_ACTION, ACL_CLUSTER}}},              // DeleteShareGroupState
    {87, 1, {{ACL_CLUSTER_ACTION, ACL_CLUSTER}}},              // ReadShareGroupStateSummary
    {88,
     3,
     {{ACL_READ, ACL_GROUP}, {ACL_DESCRIBE, ACL_TOPIC}, {ACL_CREATE, ACL_TOPIC}}}, // StreamsGroupHeartbeat
    {89, 2, {{ACL_DESCRIBE, ACL_GROUP}, {ACL_DESCRIBE, ACL_TOPIC}}},               // StreamsGroupDescribe
    {90, 2, {{ACL_DESCRIBE, ACL_GROUP}, {ACL_DESCRIBE, ACL_TOPIC}}}, // DescribeShareGroupOffsets
    {91, 2, {{ACL_READ, ACL_GROUP}, {ACL_READ, ACL_TOPIC}}},         // AlterShareGroupOffsets
    {92, 2, {{ACL_DELETE, ACL_GROUP}, {ACL_READ, ACL_TOPIC}}},       // DeleteShareGroupOffsets
    {94, 1, {{ACL_ALTER, ACL_CLUSTER}}},                             // UnregisterController
};

bool authorize(const struct request_context *ctx, enum acl_operation operation, enum acl_resource resource,
               struct slice name)
{
    return true;
}

const struct api_permission *api_permissions(int16_t api_key, int *count)
{
    size_t low = 0, high = sizeof rows / sizeof rows[0];
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (rows[mid].api_key == api_key) {
            *count = rows[mid].count;
            return rows[mid].lines;
        }
        if (rows[mid].api_key < api_key)
            low = mid + 1;
        else
            high = mid;
    }
    *count = 0;
    return NULL;
}
