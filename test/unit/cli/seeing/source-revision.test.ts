import { expect, test } from "vitest";
import { readRevision } from "#cli/seeing/source-revision.ts";
import type { Session } from "#cli/session/session.ts";
import type { Upstream } from "#shared/fleet/kinds/source.ts";

test.each<[string, Upstream, string]>([
  [
    "a chart in a registry",
    { kind: "helm", url: "oci://ghcr.io/acme/charts/", chart: "web" },
    "helm pull oci://ghcr.io/acme/charts/web --version 5.0.0 --untar   (then use --source app=web instead of --revision)",
  ],
  [
    "a chart in a Helm repository",
    { kind: "helm", url: "https://charts.acme.example", chart: "web" },
    "helm pull web --repo https://charts.acme.example --version 5.0.0 --untar   (then use --source app=web instead of --revision)",
  ],
  ["files in a registry", { kind: "oci", url: "oci://ghcr.io/acme/shop" }, "--source app=FOLDER"],
])("a version of %s that no installation has names the command that gets it", async (_, upstream, next) => {
  const owner = { kind: "SyncGroup", namespace: "shop", name: "web" } as const;
  const asked = { owner, name: "app", upstream, paths: ["."], revision: "5.0.0" };
  // Documents alone ask no installation.
  const nobody = {} as Session;
  await expect(readRevision(nobody, asked, "documents alone")).rejects.toMatchObject({
    message: expect.stringContaining("Source app never had the revision 5.0.0"),
    next,
  });
});
