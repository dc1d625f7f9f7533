/** One run of the mutation tool: the files that are changed, and the tests that should see it. */
export interface MutationPart {
  readonly mutate: readonly string[];
  /** In the order in which they are asked: the cheap ones first. */
  readonly tests: readonly string[];
  /** About every n-th mutant only, where all of them would take hours. */
  readonly every?: number;
}

export interface MutationArea {
  /** Percent of the mutants that have to die, those not counted whose survival is explained. */
  readonly least: number;
  readonly parts: Readonly<Record<string, MutationPart>>;
}

const domain = (...names: readonly string[]) => names.map((name) => `shared/domain/${name}.ts`);
const domainTests = (...names: readonly string[]) => names.map((name) => `test/unit/shared/domain/${name}.test.ts`);
const adapters = (...names: readonly string[]) => names.map((name) => `shared/adapters/${name}.ts`);
const engine = (...names: readonly string[]) => names.map((name) => `functions/apply/engine/${name}.ts`);
const times = ["rows/due", "rows/sync-row", "rows/object-rows", "next-resolve"];
const members = ["membership", "inventory", "parent-object"];
const adapterTests = "test/integration/shared/adapters";
const workerTests = "test/integration/functions/apply";
/** Whose turn it is, who may work, and what becomes of what was seen: few of the worker's tests are about these. */
const leases = "{lease,held-lease,commit,turns,worker-deaths,work-cluster}";

/**
 * Where a mutant would be dangerous, and the tests below e2e that are there to kill it. Composition roots (`wire.ts`,
 * `handler.ts`, `env.ts`) are shown by e2e. The planner is not among them yet.
 */
export const mutationAreas: Readonly<Record<string, MutationArea>> = {
  timer: {
    least: 90,
    parts: {
      timer: {
        mutate: ["functions/tick/claim-due.ts", ...domain(...times)],
        tests: [...domainTests(...times), "test/unit/functions/tick/*.test.ts"],
      },
    },
  },
  rows: {
    least: 90,
    parts: {
      rows: {
        mutate: domain("rows/row", "rows/keys", "rows/row-size", "rows/event-row", "rows/revision-row"),
        tests: domainTests("rows/keys", "rows/row-size", "rows/event-row", "rows/revision-row"),
      },
    },
  },
  membership: {
    least: 90,
    parts: {
      membership: { mutate: domain(...members), tests: domainTests(...members) },
    },
  },
  deletions: {
    least: 90,
    parts: {
      deletions: {
        mutate: engine("deletion-guards", "prune-set"),
        tests: [
          "test/unit/functions/apply/engine/deletion-guards.test.ts",
          `${workerTests}/engine/{prune-set,prune-obstacles,deletion-guards,namespace-guard}.test.ts`,
        ],
        every: 3,
      },
    },
  },
  worker: {
    least: 90,
    parts: {
      leases: {
        mutate: [`functions/apply/${leases}.ts`],
        tests: [
          "test/unit/functions/apply/turns.test.ts",
          `${workerTests}/worker-deaths.test.ts`,
          `${workerTests}/{work-cluster,short-lease,newer-rows}.test.ts`,
          `${workerTests}/two-writers.test.ts`,
        ],
        every: 12,
      },
      passes: {
        mutate: ["functions/apply/*.ts", "!functions/apply/{wire,handler,env}.ts", `!functions/apply/${leases}.ts`],
        tests: ["test/unit/functions/apply/*.test.ts", `${workerTests}/*.test.ts`],
        every: 20,
      },
      verbs: { mutate: ["functions/apply/verbs/*.ts"], tests: [`${workerTests}/*.test.ts`], every: 20 },
      engine: {
        mutate: ["functions/apply/engine/*.ts", "!functions/apply/engine/{prune-set,deletion-guards}.ts"],
        tests: [
          "test/unit/functions/apply/engine/*.test.ts",
          `${workerTests}/engine/!(crash-safety|lost-answers).test.ts`,
          `${workerTests}/engine/*.test.ts`,
        ],
        every: 20,
      },
    },
  },
  api: {
    least: 90,
    parts: {
      api: {
        mutate: ["functions/api/*.ts", "!functions/api/{wire,handler,env}.ts"],
        tests: ["test/unit/functions/api/*.test.ts", "test/unit/functions/two-writers.test.ts"],
        every: 5,
      },
    },
  },
  adapters: {
    least: 90,
    parts: {
      table: {
        mutate: adapters("dynamo-table", "readable-row", "row-limit"),
        tests: ["test/contract/adapters/dynamo-calls.test.ts", "test/contract/adapters/table.test.ts"],
        every: 3,
      },
      blobs: {
        mutate: adapters("s3-blob-store", "blob-too-large", "byte-collector"),
        tests: [
          "test/unit/shared/adapters/byte-collector.test.ts",
          "test/contract/adapters/s3-calls.test.ts",
          "test/contract/adapters/blob-store.test.ts",
        ],
        every: 3,
      },
      queue: {
        mutate: adapters("sqs-sender"),
        tests: ["test/contract/adapters/sqs-sender.test.ts", "test/integration/shared/adapters/sqs-sender.test.ts"],
        every: 3,
      },
      kube: {
        mutate: adapters("kube/*"),
        tests: ["test/contract/kube/*.test.ts", `${workerTests}/hostile-answers.test.ts`],
        every: 20,
      },
      identity: {
        mutate: adapters("eks-*", "role-sessions", "secrets-reader", "asked-once-secrets", "shared-questions"),
        tests: [
          "test/unit/shared/adapters/eks-token.test.ts",
          `${adapterTests}/{secrets-reader,eks-access}.test.ts`,
          `${workerTests}/eks-connection.test.ts`,
        ],
        every: 10,
      },
      edges: {
        mutate: adapters("address-*", "artifact-archive"),
        tests: ["test/unit/shared/adapters/{address-rules,artifact-archive}.test.ts"],
        every: 5,
      },
      git: {
        mutate: adapters("git/*", "git-http", "http-transfer", "isomorphic-git-remote"),
        tests: [
          "test/unit/shared/adapters/git/*.test.ts",
          `${adapterTests}/isomorphic-git-remote.test.ts`,
          `${adapterTests}/hostile-repositories.test.ts`,
        ],
        every: 20,
      },
    },
  },
};

/** What one run is called: an area of one part by the area's name. */
export function partId(area: string, part: string): string {
  return Object.keys(mutationAreas[area]?.parts ?? {}).length === 1 ? area : `${area}/${part}`;
}
