/** One run of the mutation tool: the files that are changed, and the tests that should notice each change. */
export interface MutationPart {
  readonly mutate: readonly string[];
  /** In the order in which they run: the cheap ones first. */
  readonly tests: readonly string[];
  /** Makes about every n-th mutant only, because all of them would take hours. */
  readonly every?: number;
}

export interface MutationArea {
  /** The percentage of mutants that have to die, not counting mutants whose survival is explained. */
  readonly least: number;
  readonly parts: Readonly<Record<string, MutationPart>>;
}

const shared = (...names: readonly string[]) => names.map((name) => `shared/${name}.ts`);
const sharedTests = (...names: readonly string[]) => names.map((name) => `test/unit/shared/${name}.test.ts`);
const adapters = (...names: readonly string[]) => names.map((name) => `shared/adapters/${name}.ts`);
const engine = (...names: readonly string[]) => names.map((name) => `shared/kube/engine/${name}.ts`);
const times = ["fleet/rows/due", "fleet/rows/sync-row", "fleet/rows/object-rows", "fleet/sources/next-resolve"];
const members = ["kube/membership", "kube/inventory", "kube/parent-object"];
const adapterTests = "test/integration/shared/adapters";
const workerTests = "test/integration/functions/apply";
/** Leaves out tests that must be quicker than a limit. They are too slow while the coverage of each line is counted. */
const calmWorkerTests = `${workerTests}/!(cluster-faults|silent-apis|worker-memory).test.ts`;
const apply = (...names: readonly string[]) => names.map((name) => `functions/apply/${name}.ts`);
const engineTests = "test/integration/shared/kube/engine";
/** Turns, leases, and the writes of observations: few of the worker's tests are about these. */
const leases = [
  "lease/{lease,held-lease}",
  "worker/{check-outcome,commit,plan-turns,read-cluster,take-sync-turns,work-cluster,worker-deaths}",
];
/** Stories run first. The model that plays seeds runs last, because it takes longest. */
const plannerTests = ["!(planner.property)", "planner.property"].map(
  (name) => `test/unit/functions/rollout/${name}.test.ts`,
);
/** Steps that operations share, without their findings. */
const blobSteps = "{progress,rebuild-inventory,rendering-places,sync-blobs}";

/**
 * The areas in which a mutant would be dangerous, and the tests below e2e that should kill it. The e2e tests cover
 * composition roots (`wire.ts`, `handler.ts`, `env.ts`).
 */
export const mutationAreas: Readonly<Record<string, MutationArea>> = {
  timer: {
    least: 90,
    parts: {
      timer: {
        mutate: ["functions/tick/claim-due.ts", ...shared(...times)],
        tests: [...sharedTests(...times), "test/unit/functions/tick/*.test.ts"],
      },
    },
  },
  rows: {
    least: 90,
    parts: {
      rows: {
        mutate: shared(
          "fleet/rows/row",
          "fleet/rows/keys",
          "fleet/rows/row-size",
          "fleet/rows/event-row",
          "fleet/rows/revision-row",
        ),
        tests: sharedTests("fleet/rows/keys", "fleet/rows/row-size", "fleet/rows/event-row", "fleet/rows/revision-row"),
      },
    },
  },
  membership: {
    least: 90,
    parts: {
      membership: { mutate: shared(...members), tests: sharedTests(...members) },
    },
  },
  deletions: {
    least: 90,
    parts: {
      deletions: {
        mutate: engine("deletion-guards", "prune-set"),
        tests: [
          "test/unit/shared/kube/engine/deletion-guards.test.ts",
          `${engineTests}/{prune-set,prune-obstacles,deletion-guards,namespace-guard}.test.ts`,
        ],
        every: 3,
      },
    },
  },
  worker: {
    least: 90,
    parts: {
      leases: {
        mutate: apply(...leases),
        tests: [
          "test/unit/functions/apply/{worker,lease}/*.test.ts",
          `${workerTests}/worker-deaths.test.ts`,
          `${workerTests}/{worker-reports,work-cluster,routine,short-lease,newer-rows}.test.ts`,
          `${workerTests}/two-writers.test.ts`,
        ],
        every: 12,
      },
      passes: {
        mutate: apply("worker/{work-sync,trimmed-observation}", "lease/write-gate", "cluster/*", `steps/${blobSteps}`),
        tests: ["test/unit/functions/apply/**/*.test.ts", calmWorkerTests],
        every: 20,
      },
      operations: {
        mutate: [...apply("operations/*", "steps/*"), `!functions/apply/steps/${blobSteps}.ts`],
        tests: ["test/unit/functions/apply/**/*.test.ts", calmWorkerTests],
        every: 20,
      },
      engine: {
        mutate: ["shared/kube/engine/*.ts", "!shared/kube/engine/{prune-set,deletion-guards}.ts"],
        tests: [
          "test/unit/shared/kube/engine/*.test.ts",
          `${engineTests}/!(crash-safety|lost-answers).test.ts`,
          `${engineTests}/*.test.ts`,
        ],
        every: 20,
      },
    },
  },
  planner: {
    least: 90,
    parts: {
      core: {
        mutate: shared("fleet/rollout/*"),
        tests: ["test/unit/shared/fleet/rollout/*.test.ts", ...plannerTests],
        every: 8,
      },
      steps: {
        mutate: ["functions/rollout/*/**/*.ts"],
        tests: plannerTests,
        every: 12,
      },
    },
  },
  api: {
    least: 90,
    parts: {
      api: {
        mutate: ["functions/api/*/*.ts"],
        tests: [
          "test/unit/functions/api/*.test.ts",
          "test/unit/functions/concurrent-writers.test.ts",
          "test/integration/functions/api/hostile-requests.test.ts",
        ],
        every: 5,
      },
    },
  },
  adapters: {
    least: 90,
    parts: {
      table: {
        mutate: adapters(
          "aws/dynamo-table",
          "aws/dynamo-expressions",
          "aws/dynamo-cursor",
          "aws/dynamo-retries",
          "aws/row-form",
        ),
        tests: ["test/contract/adapters/{row-form,dynamo-calls,table}.test.ts"],
        every: 3,
      },
      blobs: {
        mutate: adapters("aws/s3-blob-store", "aws/blob-too-large", "byte-collector"),
        tests: [
          "test/unit/shared/adapters/byte-collector.test.ts",
          "test/contract/adapters/s3-calls.test.ts",
          "test/contract/adapters/blob-store.test.ts",
        ],
        every: 3,
      },
      queue: {
        mutate: adapters("aws/sqs-sender"),
        tests: ["test/contract/adapters/sqs-sender.test.ts", "test/integration/shared/adapters/aws/sqs-sender.test.ts"],
        every: 3,
      },
      kube: {
        mutate: adapters("kube/*"),
        tests: [
          "test/unit/shared/adapters/kube/*.test.ts",
          "test/contract/kube/*.test.ts",
          `${workerTests}/hostile-answers.test.ts`,
        ],
        every: 20,
      },
      identity: {
        mutate: adapters("aws/eks-*", "aws/role-sessions", "aws/secrets-reader", "aws/shared-questions"),
        tests: [
          "test/unit/shared/adapters/aws/eks-token.test.ts",
          `${adapterTests}/aws/{secrets-reader,eks-access}.test.ts`,
          `${workerTests}/eks-connection.test.ts`,
        ],
        every: 10,
      },
      edges: {
        mutate: adapters("net/address-rules", "render/artifact-archive"),
        tests: ["test/unit/shared/adapters/{net/address-rules,render/artifact-archive}.test.ts"],
        every: 5,
      },
      git: {
        mutate: adapters("git/*", "net/http-transfer"),
        tests: [
          "test/unit/shared/adapters/git/*.test.ts",
          `${adapterTests}/net/http-transfer.test.ts`,
          `${adapterTests}/git/{git-protocol,lying-git-servers}.test.ts`,
          `${adapterTests}/git/{isomorphic-git-remote,hostile-repositories}.test.ts`,
        ],
        every: 20,
      },
    },
  },
};

/** The name of one run. An area with a single part is named without its part. */
export function partId(area: string, part: string): string {
  return Object.keys(mutationAreas[area]?.parts ?? {}).length === 1 ? area : `${area}/${part}`;
}
