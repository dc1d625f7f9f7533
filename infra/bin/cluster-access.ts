import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { accessFiles } from "#infra/cluster-access/access-files.ts";

for (const [path, text] of Object.entries(accessFiles())) {
  const file = join("examples/cluster-access", path);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
}
