/** The function `build` in its own process, like a sandbox on Lambda. The job arrives on standard input. */
import { text } from "node:stream/consumers";
import { wireBuild } from "#functions/build/wire.ts";

const [, , kubectl = ""] = process.argv;
const build = wireBuild({}, { kubectl: async () => kubectl });
process.stdout.write(JSON.stringify(await build(JSON.parse(await text(process.stdin)))));
