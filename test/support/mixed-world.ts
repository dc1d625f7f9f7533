/** A world with a zone, of whose functions some run this version and some the one before. */
import { GetQueueAttributesCommand, ListQueuesCommand } from "@aws-sdk/client-sqs";
import type { RequestRecord } from "@starling/embedded-apiserver";
import type { EventSourceLoop } from "#local/aws/lambda/event-source-loop.ts";
import { quiet } from "#local/aws/wire/fault-options.ts";
import type { FileChanges } from "#local/git/repository.ts";
import { type FunctionCode, functionCode } from "#local/machine/function-code.ts";
import { beginColoredWeb, coloredFiles } from "#test/support/colored-web.ts";
import { startWorld, type World } from "#test/support/e2e-world.ts";
import { versionBefore } from "#test/support/version-before.ts";

/** A call of a function of the version before. */
export interface OldCall {
  readonly folder: string;
  readonly messages: readonly string[];
  /** Number of messages that went back to the queue. */
  readonly returned: number;
}

/** @param zone - that of workers; `home` for other functions. */
type RunsBefore = (folder: string, zone: string) => boolean;

export interface MixedWorld {
  readonly world: World;
  /** The errors of the functions of the version before, in all calls. */
  readonly thrown: readonly string[];
  /** From their next call on these functions run the version before, and the others this one. */
  run(before: RunsBefore): void;
  /** Calls and requests are counted anew. */
  forget(): void;
  calls(): readonly OldCall[];
  /** The requests to API servers that changed something, as `c1 PATCH /ConfigMap shop/web`. */
  changes(): readonly string[];
  requestsTo(cluster: string): readonly RequestRecord[];
  /**
   * Registers these clusters, those that begin with `s` in the zone, and takes a group `web` over them into sync.
   * Clusters with the label `spare` are in no group. @returns the commit.
   */
  begin(...clusters: readonly string[]): Promise<string>;
  /** Commits the color of the ConfigMap `web`, and other files. @returns the commit. */
  push(color: string, others?: FileChanges): Promise<string>;
  /** The event sources of workers of `home`, or of the zone. */
  workersOf(zone: string): readonly EventSourceLoop[];
  /** Number of dead letters of all queues. */
  deadLetters(): Promise<number>;
  close(): Promise<void>;
}

const zone = "spoke";
const subnets = { subnets: ["subnet-0a1b2c3d4e5f60718"], securityGroups: ["sg-0a1b2c3d4e5f60718"] };

/** @param commit - that of the version before; the default is that of the templates. */
export async function startMixedWorld(commit?: string): Promise<MixedWorld> {
  const before = await versionBefore(commit);
  const calls: OldCall[] = [];
  const thrown: string[] = [];
  let runsBefore: RunsBefore = () => false;

  async function called(folder: string, event: unknown, call: () => unknown): Promise<unknown> {
    try {
      const answer = await call();
      const { Records = [] } = (event ?? {}) as { readonly Records?: readonly { readonly body: string }[] };
      const { batchItemFailures = [] } = (answer ?? {}) as { readonly batchItemFailures?: readonly unknown[] };
      calls.push({ folder, messages: Records.map(({ body }) => body), returned: batchItemFailures.length });
      return answer;
    } catch (error) {
      thrown.push(`${folder}: ${error}`);
      throw error;
    }
  }

  function code(folder: string): FunctionCode {
    const [old, now] = [before.code(folder), functionCode(folder)];
    return {
      check: now.check,
      wire(variables, aws, options) {
        const current = now.wire(variables, aws, options);
        const former = old?.wire(variables, aws, options) ?? current;
        const { STARLING_ZONE: place = "home" } = variables;
        return (event, context) =>
          runsBefore(folder, place) ? called(folder, event, () => former(event, context)) : current(event, context);
      },
    };
  }

  const world = await startWorld({
    faults: quiet,
    rate: 30,
    zones: JSON.stringify([{ name: zone, ...subnets }]),
    code,
  });
  return {
    world,
    thrown,
    run(these) {
      runsBefore = these;
    },
    forget() {
      calls.length = 0;
      world.fleet.clearRequests();
    },
    calls: () => calls,
    changes: () =>
      world.fleet
        .requests()
        .flatMap(({ method, dryRun, result, cluster, object }) =>
          method === "GET" || dryRun || result >= 300 ? [] : [`${cluster} ${method} ${object}`],
        ),
    requestsTo: (cluster) => world.fleet.requests().filter((request) => request.cluster === cluster),
    async begin(...clusters) {
      await world.join(...clusters.map((name) => ({ name, ...(name.startsWith("s") ? { zone } : {}) })));
      return beginColoredWeb(
        world,
        { maxConcurrent: 2, maxUnreachable: "100%", progressDeadline: "3m" },
        { selector: { matchExpressions: [{ key: "spare", operator: "DoesNotExist" }] } },
      );
    },
    push: (color, others = {}) => world.push("shop", { ...coloredFiles(color), ...others }),
    workersOf(place) {
      const ofZone = world.machine.zones.get(zone) ?? [];
      if (place === zone) return ofZone;
      const { sources } = world.machine;
      const all = [...(sources.get("apply") ?? []), ...(sources.get("applySlow") ?? [])];
      return all.filter((source) => !ofZone.includes(source));
    },
    async deadLetters() {
      const { sqs } = world.machine.aws;
      const { QueueUrls = [] } = await sqs.send(new ListQueuesCommand({}));
      const counts = await Promise.all(
        QueueUrls.filter((url) => /dead/i.test(url)).map(async (QueueUrl) => {
          const asked = { QueueUrl, AttributeNames: ["ApproximateNumberOfMessages" as const] };
          const { Attributes = {} } = await sqs.send(new GetQueueAttributesCommand(asked));
          return Number(Attributes.ApproximateNumberOfMessages);
        }),
      );
      return counts.reduce((sum, count) => sum + count, 0);
    },
    async close() {
      await world.close();
      before.remove();
    },
  };
}
