/** Adds a remedy to the errors of hosts that are not reached, by the network from which they were asked. */
import { StarlingError } from "#shared/base/errors.ts";
import { homeZone } from "#shared/fleet/kinds/zone-name.ts";
import type { BucketReader, GitRemote, HttpRemote } from "#shared/ports.ts";

interface Remotes {
  readonly git: GitRemote;
  readonly http: HttpRemote;
  readonly buckets: BucketReader;
}

/** @param zone - `home` is outside of every VPC. Without a zone nothing is known of the network, and nothing is added. */
export function httpFromZone(http: HttpRemote, zone: string | undefined): HttpRemote {
  return zone === undefined ? http : { ask: (question) => from(zone, http.ask(question)) };
}

/** The same for everything that Sources name. */
export function readFromZone({ git, http, buckets }: Remotes, zone: string | undefined): Remotes {
  if (zone === undefined) return { git, http, buckets };
  return {
    git: {
      listRefs: (repository, prefixes) => from(zone, git.listRefs(repository, prefixes)),
      fetchTree: (repository, commit) => from(zone, git.fetchTree(repository, commit)),
    },
    http: httpFromZone(http, zone),
    buckets: {
      list: (place, page) => from(zone, buckets.list(place, page)),
      get: (place, object, timeLeftMs) => from(zone, buckets.get(place, object, timeLeftMs)),
    },
  };
}

async function from<T>(zone: string, asking: Promise<T>): Promise<T> {
  try {
    return await asking;
  } catch (error) {
    throw withRemedy(error, zone);
  }
}

/** Errors of sockets before a connection. */
const nameless: ReadonlySet<string> = new Set(["ENOTFOUND", "EAI_AGAIN"]);
const pathless: ReadonlySet<string> = new Set(["ETIMEDOUT", "EHOSTUNREACH", "ENETUNREACH"]);

function withRemedy(error: unknown, zone: string): unknown {
  if (!(error instanceof StarlingError)) return error;
  const remedy = remedyFor(error, zone);
  if (remedy === undefined) return error;
  const { message, code, retry, data, cause } = error;
  return new StarlingError(`${message}; ${remedy}`, { code, retry, data, cause });
}

function remedyFor(error: StarlingError, zone: string): string | undefined {
  const code = socketCode(error.cause);
  const isUnknown = nameless.has(code);
  const isSilent = error.data.silentHost !== undefined || pathless.has(code);
  // Addresses that nobody may ask, such as those of a cloud's metadata, have no remedy but another URL.
  const isPrivate = error.code === "AddressRefused" && error.data.network === "private";
  if (zone === homeZone) {
    const isOutside = isUnknown || isSilent || isPrivate;
    return isOutside
      ? "a host in a private network is read from a zone only (settings resolveZone and gitAllow)"
      : undefined;
  }
  if (isUnknown)
    return `zone ${zone} asks the resolver of its VPC: let that know the name, by a private hosted zone or a rule of Route 53 Resolver`;
  if (isSilent)
    return `it is asked from zone ${zone}: look for a route from the subnets of the zone, and whether its security groups let the request out`;
  return isPrivate ? "the setting is gitAllow" : undefined;
}

/** A host with several addresses has an error for each. */
function socketCode(cause: unknown): string {
  if (cause instanceof AggregateError && cause.errors.length > 0) return socketCode(cause.errors[0]);
  if (!(cause instanceof Error)) return "";
  const { code } = cause as NodeJS.ErrnoException;
  return typeof code === "string" ? code : socketCode(cause.cause);
}
