/** `npm run zone-template [folder]`: writes the template of a zone, and the zip of its code, for StackSets and for people without the CDK. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { dump } from "js-yaml";
import { zipOf } from "#infra/zone-template/zip.ts";
import { zoneTemplate } from "#infra/zone-template/zone-template.ts";
import { starlingVersion } from "#shared/base/starling-version.ts";

const usage = "npm run zone-template, or npm run zone-template -- FOLDER; the settings are parameters of the template";
const [folder = join("cdk.out", "zone"), ...others] = process.argv.slice(2);
const wrong = folder.startsWith("-") || folder === "" ? folder : others[0];
if (wrong !== undefined) {
  console.error(`error: "${wrong}" is no folder for the template; expected at most one folder\n  next: ${usage}`);
  process.exit(2);
}
const outdir = mkdtempSync(join(tmpdir(), "starling-zone-template-"));
try {
  const { template, code } = zoneTemplate({ outdir, bundles: true });
  mkdirSync(folder, { recursive: true });
  const files = {
    "starling-zone.template.yaml": dump(template, { noRefs: true, lineWidth: 120 }),
    [`starling-zone-${starlingVersion}.zip`]: zipOf(code),
  };
  for (const [name, content] of Object.entries(files)) {
    writeFileSync(join(folder, name), content);
    console.log(join(folder, name));
  }
} finally {
  rmSync(outdir, { recursive: true, force: true });
}
