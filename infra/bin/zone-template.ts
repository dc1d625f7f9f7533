/** `npm run zone-template [folder]`: writes the template of a zone, and the zip of its code, for StackSets and for people without the CDK. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { dump } from "js-yaml";
import { zipOf } from "#infra/zone-template/zip.ts";
import { type ZoneTemplate, zoneTemplate } from "#infra/zone-template/zone-template.ts";
import { plainLine } from "#shared/base/plain-text.ts";
import { starlingVersion } from "#shared/base/starling-version.ts";

const usage = "npm run zone-template, or npm run zone-template -- FOLDER; the settings are parameters of the template";

function refuse(text: string): never {
  console.error(`error: ${plainLine(text)}\n  next: ${usage}`);
  process.exit(2);
}

function writing(path: string, write: () => void): void {
  try {
    write();
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    refuse(`the template cannot be written to "${path}" (${code}); expected a folder that you may write to`);
  }
}

function made(): ZoneTemplate {
  const outdir = mkdtempSync(join(tmpdir(), "starling-zone-template-"));
  try {
    return zoneTemplate({ outdir, bundles: true });
  } finally {
    rmSync(outdir, { recursive: true, force: true });
  }
}

const [folder = join("cdk.out", "zone"), ...others] = process.argv.slice(2);
const wrong = folder.startsWith("-") || folder === "" ? folder : others[0];
if (wrong !== undefined) refuse(`"${wrong}" is no folder for the template; expected at most one folder`);
// Before the code is made, which takes seconds.
writing(folder, () => mkdirSync(folder, { recursive: true }));
const { template, code } = made();
const files = {
  "starling-zone.template.yaml": dump(template, { noRefs: true, lineWidth: 120 }),
  [`starling-zone-${starlingVersion}.zip`]: zipOf(code),
};
for (const [name, content] of Object.entries(files)) {
  const path = join(folder, name);
  writing(path, () => writeFileSync(path, content));
  console.log(path);
}
