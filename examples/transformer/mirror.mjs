/**
 * A transformer: it takes the present artifact of a Source, replaces the registries of images by a mirror, and pushes
 * the result to another Source.
 *
 *   node mirror.mjs --from SOURCE --to SOURCE -n NAMESPACE --mirror REGISTRY
 *
 * It needs Node 20, tar, and the command `starling` with a context; `--starling COMMAND` names another command.
 */
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";

const { values } = parseArgs({
  options: {
    from: { type: "string" },
    to: { type: "string" },
    namespace: { type: "string", short: "n" },
    mirror: { type: "string" },
    starling: { type: "string", default: "starling" },
  },
});
for (const name of ["from", "to", "namespace", "mirror"]) {
  if (values[name] === undefined) {
    console.error(`--${name} is missing: node mirror.mjs --from SOURCE --to SOURCE -n NAMESPACE --mirror REGISTRY`);
    process.exit(2);
  }
}

/** Runs `starling`; its own messages go to the terminal. */
function starling(...words) {
  const [command, ...before] = values.starling.split(" ");
  const all = [...before, ...words, "-n", values.namespace];
  return execFileSync(command, all, { encoding: "utf8", stdio: ["ignore", "pipe", "inherit"] });
}

/** `image: ghcr.io/acme/web:1` becomes `image: MIRROR/ghcr.io/acme/web:1`. */
function mirrored(text) {
  return text.replaceAll(/^(\s*(?:- )?image:\s*["']?)([^\s"'#]+)/gm, (line, before, image) =>
    image.startsWith(`${values.mirror}/`) ? line : `${before}${values.mirror}/${image}`,
  );
}

function transform(folder) {
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile() || !/\.ya?ml$/.test(entry.name)) continue;
    const file = join(entry.parentPath ?? entry.path, entry.name);
    writeFileSync(file, mirrored(readFileSync(file, "utf8")));
  }
}

const folder = mkdtempSync(join(tmpdir(), "mirror-"));
try {
  const [archive, files] = [join(folder, "artifact.tar.gz"), join(folder, "files")];
  const artifact = JSON.parse(starling("source", "resolve", values.from, "--download", archive, "-o", "json"));
  mkdirSync(files);
  execFileSync("tar", ["xzf", archive, "-C", files]);
  transform(files);
  // The same content and the same mirror are the same version.
  const version = createHash("sha256").update(`${artifact.digest} ${values.mirror}`).digest("hex").slice(0, 16);
  const origin = `${artifact.revision} of ${artifact.origin}`;
  process.stdout.write(starling("source", "push", values.to, "--as", version, "--dir", files, "--origin", origin));
} finally {
  rmSync(folder, { recursive: true, force: true });
}
