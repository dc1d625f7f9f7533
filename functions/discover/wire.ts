import { discover } from "#functions/discover/discover.ts";
import type { DiscoverEnv } from "#functions/discover/env.ts";
import { DynamoTable } from "#shared/adapters/aws/dynamo-table.ts";
import { EksInventory } from "#shared/adapters/aws/eks-inventory.ts";
import { powertoolsLog } from "#shared/adapters/aws/powertools-observability.ts";
import { SqsSender } from "#shared/adapters/aws/sqs-sender.ts";
import { randomIds, systemClock } from "#shared/adapters/system.ts";
import { namedTexts } from "#shared/base/named-texts.ts";
import { parseServedNames } from "#shared/fleet/served-names.ts";
import type { DiscoveryClients } from "#shared/lambda/discovery-clients.ts";
import { eachMessage, type SqsHandler, sqsHandler } from "#shared/lambda/sqs-handler.ts";
import type { WireOptions } from "#shared/lambda/wire-options.ts";

export function wireDiscover(env: DiscoverEnv, aws: DiscoveryClients, options: WireOptions = {}): SqsHandler {
  const { clock = systemClock } = options;
  const { STARLING_INSTALLATION: installation, STARLING_REGION: region } = env;
  const log = powertoolsLog("discover");
  const ports = {
    table: new DynamoTable(aws.dynamo, env.STARLING_TABLE),
    sender: new SqsSender(aws.sqs, { rollout: env.STARLING_QUEUE_ROLLOUT }),
    inventory: new EksInventory({ ...aws, clock, installation, region }),
    clock,
    ids: randomIds,
    log,
    installation,
    zonesOfVpcs: namedTexts(env.STARLING_ZONE_VPCS),
    served: parseServedNames(env.STARLING_ZONE_CLUSTERS),
  };
  return sqsHandler({
    queue: "discover",
    log,
    work: (messages, context) => eachMessage(messages, ({ discovery }) => discover(discovery, ports, context)),
  });
}
