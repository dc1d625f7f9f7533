/**
 * `node resolve-child.ts SPEC`: resolves a Source that has no artifact yet, in a process that did nothing else, and prints
 * what that took. The rows and blobs are in memory.
 */
import { IsomorphicGitRemote } from "#shared/adapters/git/isomorphic-git-remote.ts";
import { addressRules } from "#shared/adapters/net/address-rules.ts";
import { SourceWorld } from "#test/support/source-world.ts";

const [spec = ""] = process.argv.slice(2);
const world = new SourceWorld();
world.git = new IsomorphicGitRemote({ rules: addressRules("127.0.0.1") });
await world.put(JSON.parse(spec));
const started = performance.now();
const { status } = await world.resolve();
const ms = performance.now() - started;
const said = status.conditions.find(({ type }) => type === "Ready")?.message ?? "";
const { digest = "", files = 0 } = status.artifact ?? {};
const peakRssMiB = Math.round(process.resourceUsage().maxRSS / 1024);
process.stdout.write(JSON.stringify({ ms, peakRssMiB, digest, files, said }));
