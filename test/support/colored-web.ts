/** A group `web` that writes one ConfigMap, whose color tells the revision. */
import {
  configMap,
  type GroupInput,
  groupDocument,
  namespaceManifest,
  sourceDocument,
} from "#test/support/e2e-documents.ts";
import type { World } from "#test/support/e2e-world.ts";

export const coloredFiles = (color: string) => ({ "deploy/web.json": configMap("web", { color }) });

/** Takes the group into sync in red, on all clusters when no others are named. @returns the commit. */
export async function beginColoredWeb(
  world: World,
  rollout: GroupInput["rollout"],
  clusters: GroupInput["clusters"] = { all: true },
): Promise<string> {
  const commit = await world.createRepository("shop", {
    ...coloredFiles("red"),
    "deploy/ns.json": namespaceManifest,
  });
  await world.apply(
    sourceDocument("shop", { git: { url: world.git.url("shop"), ref: { branch: "main" } }, interval: "1m" }),
    groupDocument("web", { clusters, templates: [{ name: "web", source: "shop", path: "deploy" }], rollout }),
  );
  await world.untilInSync("web", commit);
  return commit;
}
