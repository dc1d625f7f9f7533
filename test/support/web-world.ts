import {
  type GroupInput,
  groupDocument,
  ringStages,
  ringsOf,
  type SourceInput,
  sourceDocument,
} from "#test/support/e2e-documents.ts";
import { startWorld, type World, type WorldOptions } from "#test/support/e2e-world.ts";
import type { FleetTarget } from "#test/support/fleet.ts";

export interface WebSetup {
  /** Clusters by ring; each ring is a stage, in this order. */
  readonly rings: Readonly<Record<string, number>>;
  readonly files: Readonly<Record<string, string>>;
  readonly rollout?: GroupInput["rollout"];
  readonly apply?: GroupInput["templates"][number]["apply"];
  readonly source?: Partial<SourceInput>;
  readonly world?: WorldOptions;
}

/** The group of the document, with its clusters and templates as `webWorld` makes them and another rollout. */
export function webGroup(setup: Pick<WebSetup, "rings" | "rollout" | "apply">) {
  return groupDocument("web", {
    clusters: { selector: { matchExpressions: [{ key: "ring", operator: "Exists" }] } },
    templates: [{ name: "app", source: "app", path: "deploy", apply: { interval: "4h", ...setup.apply } }],
    rollout: { stages: ringStages(...Object.keys(setup.rings)), progressDeadline: "1h", ...setup.rollout },
  });
}

export type WithWebWorld = (setup: WebSetup, use: (world: World, commit: string) => Promise<void>) => Promise<void>;

/**
 * Gives worlds on these clusters, with one repository, one Source `app` and one SyncGroup `web` over every cluster that
 * has a ring; `use` is given such a world, which is closed after it, and the id of the first commit.
 */
export function webWorldOn(target: FleetTarget): WithWebWorld {
  return async (setup, use) => {
    const world = await startWorld({ target, ...setup.world });
    try {
      await world.join(...ringsOf(setup.rings));
      const commit = await world.createRepository("app", setup.files);
      const git = { url: world.git.url("app"), ref: { branch: "main" } };
      await world.apply(
        sourceDocument("app", { git, paths: ["deploy"], interval: "1h", ...setup.source }),
        webGroup(setup),
      );
      await use(world, commit);
    } finally {
      await world.close();
    }
  };
}
