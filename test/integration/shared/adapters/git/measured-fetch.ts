/** Fetches in a process of its own, and prints the result and the largest memory that the process had. */

import { IsomorphicGitRemote } from "#shared/adapters/git/isomorphic-git-remote.ts";
import { addressRules } from "#shared/adapters/net/address-rules.ts";
import { errorCode, errorMessage } from "#shared/base/errors.ts";

const [url = "", oid = "", path = "."] = process.argv.slice(2);
const remote = new IsomorphicGitRemote({ rules: addressRules("127.0.0.1") });

async function outcome(): Promise<string> {
  try {
    const { files } = await remote.fetchTree({ url }, { oid, paths: [path] });
    return files.map((file) => file.path).join(" ");
  } catch (error) {
    return `${errorCode(error)}: ${errorMessage(error)}`;
  }
}

const said = await outcome();
process.stdout.write(JSON.stringify({ said, peakMiB: Math.round(process.resourceUsage().maxRSS / 1024) }));
