/** Addresses of repositories in OCI registries: `oci://HOST[:PORT]/REPOSITORY`. */
import { loopback } from "#shared/source/http-url.ts";

/** The distribution specification's names of repositories. */
const repositoryName = /^[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*(?:\/[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*)*$/;
const maxNameLength = 255;
/** Docker Hub answers at another host than the one that its names have. */
const dockerHub = { name: "docker.io", host: "registry-1.docker.io", official: "library/" };

export interface OciRepository {
  /** `https://ghcr.io`; `http` on the same machine only. */
  readonly origin: string;
  /** `acme/charts/shop` */
  readonly name: string;
}

/** @returns what is wrong with the URL and what to write instead, or undefined. */
export function checkOciUrl(text: string): string | undefined {
  if (/[\\\s\p{Cc}]/u.test(text))
    return "contains a backslash, a space or a line end; write it as oci://HOST/REPOSITORY";
  if (!text.startsWith("oci://"))
    return "is not the address of a repository in a registry; write it as oci://HOST/REPOSITORY";
  const rest = text.slice("oci://".length);
  const url = URL.canParse(`https://${rest}`) ? new URL(`https://${rest}`) : undefined;
  if (url === undefined) return "is not a URL; write it as oci://HOST/REPOSITORY";
  if (url.username !== "" || url.password !== "" || rest.split("/")[0]?.includes("@") === true) {
    return "contains a user name or a password; remove it and name a secret in credentials";
  }
  if (url.search !== "" || url.hash !== "") return "has a query or a fragment; remove it";
  const name = pathOf(url);
  if (name === "") return "names a registry but no repository";
  if (name.includes("@")) return "contains a digest; write it into ref";
  if (/:[^/]*$/.test(name)) return "ends with a tag; write the tag into ref";
  if (name.length > maxNameLength || !repositoryName.test(name))
    return "has a repository that registries do not take: small letters, digits, and . _ - between them";
  return undefined;
}

/** The repository that a checked URL names. */
export function ociRepository(text: string): OciRepository {
  const url = new URL(`https://${text.slice("oci://".length)}`);
  const name = pathOf(url);
  if (url.host === dockerHub.name) {
    return { origin: `https://${dockerHub.host}`, name: name.includes("/") ? name : `${dockerHub.official}${name}` };
  }
  return { origin: `${loopback.has(url.hostname) ? "http" : "https"}://${url.host}`, name };
}

function pathOf(url: URL): string {
  return url.pathname.replace(/^\//, "").replace(/\/$/, "");
}
