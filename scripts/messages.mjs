/**
 * `node scripts/messages.mjs`: writes docs/messages.md, where every message of the sources stands beside an example of it,
 * so that a reviewer reads them in one sitting. `--root FOLDER` reads another repository, `--print` prints the page.
 *
 * An example is a text of the tests, of their fixtures or of the docs that has the form of the message.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { listFiles } from "./language/list-files.mjs";
import { messagesPage } from "./language/messages.mjs";

const { values: options } = parseArgs({
  options: {
    print: { type: "boolean" },
    root: { type: "string", default: fileURLToPath(new URL("..", import.meta.url)) },
  },
});
const files = listFiles(options.root).map((path) => ({
  path,
  read: () => readFileSync(join(options.root, path), "utf8"),
}));
const page = messagesPage(files);
if (options.print === true) process.stdout.write(page);
else writeFileSync(join(options.root, "docs", "messages.md"), page);
