/** The places that other tools take from, as Sources. */
import { defined } from "#shared/base/defined.ts";
import type { JsonObject } from "#shared/base/json.ts";
import { ourApiVersion } from "#shared/fleet/kinds/metadata.ts";
import { checkGitUrl } from "#shared/source/git-url.ts";

export interface DesiredSource {
  readonly name: string;
  readonly namespace: string;
  /** `{git: …}`, `{helm: …}` or `{oci: …}` */
  readonly upstream: JsonObject;
  /** `spec.ignore` */
  readonly ignore?: string | undefined;
}

export function sourceManifest({ name, namespace, upstream, ignore }: DesiredSource): JsonObject {
  const spec = { ...upstream, ...defined({ ignore }) };
  return { apiVersion: ourApiVersion, kind: "Source", metadata: { name, namespace }, spec };
}

/** The secret that a Source over SSH needs, until somebody writes the name of a real one. */
const someSecret = "starling/git/name-of-the-secret";
export const aboutSshSecret = `its repository is read over SSH: put the key as privateKey and the host's keys as knownHosts into a secret, and write its name in place of ${someSecret}`;

/** @param ref - `spec.git.ref`. */
export function gitUpstream(url: string, ref: JsonObject | undefined): JsonObject {
  const credentials = isOverSsh(url) ? { secret: someSecret, kind: "ssh" } : undefined;
  return { git: { url, ...defined({ ref, credentials }) } };
}

export function isOverSsh(url: string): boolean {
  return url.startsWith("ssh:");
}

/**
 * The address of a git repository in the form that a Source takes: `git@github.com:acme/app.git` becomes an address that begins with
 * `ssh://`. @returns undefined when there is none.
 */
export function gitUrlFrom(text: string): string | undefined {
  const [, user = "", host = "", path = ""] = /^([^@/:]+@)?([^@/:]+):(?!\/\/)\/*(.+)$/.exec(text) ?? [];
  const url = host === "" ? withoutUser(text) : `ssh://${user}${host}/${path}`;
  return checkGitUrl(url) === undefined ? url : undefined;
}

/** A user belongs to an address of SSH only; one of HTTPS may hold a token. */
function withoutUser(url: string): string {
  return isOverSsh(url) ? url : url.replace(/^http:/, "https:").replace(/\/\/[^/]*@/, "//");
}

/** @param range - a version, a range, or absent for the latest version. */
export function helmUpstream(url: string, chart: string, range: string | undefined): JsonObject {
  const isAny = range === undefined || range === "" || range === "*";
  return { helm: { url, chart, ...(isAny ? {} : { ref: { semver: range } }) } };
}

/** A chart in a registry by its whole address, without which tools write `oci://`, too. */
export function chartInRegistry(address: string): { readonly url: string; readonly chart: string } {
  const whole = inRegistry(address.replace(/\/+$/, ""));
  const at = whole.lastIndexOf("/");
  return { url: whole.slice(0, at), chart: whole.slice(at + 1) };
}

/** Argo CD writes the address of a registry without `oci://`. */
export function inRegistry(address: string): string {
  return /^[a-z]+:\/\//.test(address) ? address : `oci://${address}`;
}
