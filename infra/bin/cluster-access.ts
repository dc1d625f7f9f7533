import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { accessFiles } from "#infra/cluster-access/access-files.ts";
import { discoveryFiles } from "#infra/cluster-access/discovery-files.ts";

for (const [folder, files] of Object.entries({
  "cluster-access": accessFiles(),
  "discovery-access": discoveryFiles(),
})) {
  for (const [path, text] of Object.entries(files)) {
    const file = join("examples", folder, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
  }
}
