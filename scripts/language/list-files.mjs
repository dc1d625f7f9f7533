import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";

/** The paths of files that git knows or would add, and that exist; relative to `root`. */
export function listFiles(root) {
  const command = ["ls-files", "--cached", "--others", "--exclude-standard"];
  const listed = execFileSync("git", command, { cwd: root, encoding: "utf8" });
  return listed.split("\n").filter((path) => path !== "" && existsSync(join(root, path)));
}
