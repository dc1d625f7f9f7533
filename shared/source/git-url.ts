/**
 * URLs of git repositories: which ones Starling fetches, and when two of them mean the same repository.
 */
import { checkHttpUrl } from "#shared/source/http-url.ts";
import { checkSshUrl } from "#shared/source/ssh/ssh-url.ts";

const defaultPorts: Readonly<Record<string, string>> = {
  "http:": "80",
  "https:": "443",
  "ssh:": "22",
  "git:": "9418",
  "oci:": "443",
};

/** The address is a part of a partition key after `REPO#`. DynamoDB allows 2,048 bytes for the key. */
const maxAddressBytes = 2000;

/** `git@github.com:acme/app.git`, but not a Windows path and not a URL with a scheme. */
const scpForm = /^([^@/:\s]+@)?([^@/:\s]{2,}|\[[0-9a-fA-F:]+\]):(?!\/\/)(.+)$/;

/**
 * @returns what is wrong with a Source's URL and what to write instead, or undefined. Only `https` and `ssh` are fetched.
 * `http` is for a server on the same machine, and the fetch refuses it unless the operator allows the address.
 */
export function checkGitUrl(text: string): string | undefined {
  // Browsers read a backslash as a slash and drop line ends. Git does not, so that it would reach another host.
  if (/[\\\s\p{Cc}]/u.test(text)) return "contains a backslash, a space or a line end; write it as https://HOST/PATH";
  const scp = scpForm.exec(text);
  if (scp !== null) {
    const [, user = "", host = "", path = ""] = scp;
    return `has the form of scp; write it as ssh://${user}${host}/${path.replace(/^\/+/, "")}`;
  }
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined) return "is not a URL; write it as https://HOST/PATH";
  if (url.search !== "" || url.hash !== "") return "has a query or a fragment; give branch or tag in ref instead";
  if (!["https:", "http:", "ssh:"].includes(url.protocol))
    return `has the scheme ${url.protocol.slice(0, -1)}; only https and ssh are fetched`;
  const problem = url.protocol === "ssh:" ? checkSshUrl(text) : checkHttpUrl(text, "repository");
  if (problem !== undefined) return problem;
  return lengthProblem(text, "repository");
}

/** @returns what is wrong with the URL of a file on a web server, or undefined. */
export function checkFileUrl(text: string): string | undefined {
  return checkHttpUrl(text, "file") ?? lengthProblem(text, "file");
}

/** @returns what is wrong with the URL of a Helm repository, or undefined. */
export function checkRepositoryUrl(text: string): string | undefined {
  if (/\/index\.yaml$/.test(text)) return "is the index itself; leave index.yaml out";
  return checkHttpUrl(text, undefined) ?? lengthProblem(`${text}/index.yaml`, "repository");
}

function lengthProblem(text: string, what: string): string | undefined {
  if (normaliseGitUrl(text) !== undefined) return undefined;
  return `is longer than ${maxAddressBytes} bytes; use the ${what}'s own address`;
}

/**
 * `host/path` in lower case, without scheme, user, default port, `.git` and trailing slashes: equal for every spelling
 * of one repository. It is for comparing, not for fetching. On hosts whose paths are case-sensitive, two repositories
 * can look equal, and a Source is then polled once too often.
 * @returns undefined when the text is not the address of a repository, or when it is too long for a key.
 */
export function normaliseGitUrl(text: string): string | undefined {
  const scp = scpForm.exec(text);
  if (scp !== null) return join(scp[2] ?? "", scp[3] ?? "");
  if (!URL.canParse(text)) return undefined;
  const url = new URL(text);
  if (defaultPorts[url.protocol] === undefined || url.hostname === "") return undefined;
  const port = url.port === "" || url.port === defaultPorts[url.protocol] ? "" : `:${url.port}`;
  return join(`${url.hostname}${port}`, url.pathname);
}

function join(host: string, path: string): string | undefined {
  let start = 0;
  let end = path.length;
  while (path[start] === "/") start++;
  // A loop instead of a regular expression, because an expression that is anchored only at its end starts again at
  // every slash.
  while (end > start && path[end - 1] === "/") end--;
  const repository = path.slice(start, end).replace(/\.git$/i, "");
  if (repository === "") return undefined;
  const address = `${host}/${repository}`.toLowerCase();
  return new TextEncoder().encode(address).length > maxAddressBytes ? undefined : address;
}
