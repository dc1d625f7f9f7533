/** The signatures of AWS, written after their documentation, as a server verifies them. */
import { createHash, createHmac } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";
import type { GitRemote, GitRepository } from "#shared/ports.ts";

/** The secret key whose signatures are right. */
export const signingKey = "s3cret/key";

const mac = (key: string | Buffer, text: string) => createHmac("sha256", key).update(text).digest();
const hex = (text: string) => createHash("sha256").update(text).digest("hex");

interface SignedRequest {
  readonly time: string;
  readonly region: string;
  readonly service: string;
  readonly canonical: string;
}

/** The signature of version 4 with `signingKey`. */
export function signatureOf({ time, region, service, canonical }: SignedRequest): string {
  const day = time.slice(0, 8);
  const text = ["AWS4-HMAC-SHA256", time, `${day}/${region}/${service}/aws4_request`, hex(canonical)].join("\n");
  const key = mac(mac(mac(mac(`AWS4${signingKey}`, day), region), service), "aws4_request");
  return mac(key, text).toString("hex");
}

/** The time and the session token of a request to a repository of AWS in eu-west-1; undefined if it is not signed. */
export function signedForGit(
  { authorization = "" }: IncomingHttpHeaders,
  { host, path }: { readonly host: string; readonly path: string },
): { readonly time: string; readonly token: string } | undefined {
  const sent = Buffer.from(authorization.replace(/^Basic /, ""), "base64").toString();
  const [, token = "", time = "", signature] = /^AKID[A-Z0-9]+%(\S+):(\d{8}T\d{6})Z([0-9a-f]{64})$/.exec(sent) ?? [];
  const canonical = `GIT\n/${path}\n\nhost:${host}\n\nhost\n`;
  const isRight = signature === signatureOf({ time, region: "eu-west-1", service: "codecommit", canonical });
  return isRight ? { time, token } : undefined;
}

/** Asks a git server on this machine in the place of AWS. @param from - an origin. @param to - another one. */
export function movedGit(git: GitRemote, from: string, to: string): GitRemote {
  const moved = (repository: GitRepository) => ({ ...repository, url: repository.url.replace(from, to) });
  return {
    listRefs: (repository, prefixes) => git.listRefs(moved(repository), prefixes),
    fetchTree: (repository, commit) => git.fetchTree(moved(repository), commit),
  };
}
