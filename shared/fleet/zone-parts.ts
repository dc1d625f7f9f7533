/** The names of what belongs to a zone. The stacks give them, and functions find one part by another. */
import { namedTexts } from "#shared/base/named-texts.ts";

/** The names of the parts of a zone, by which its account and that of the installation know each other's parts. */
export function zoneParts(installation: string, zone: string) {
  const name = `${installation}-zone-${zone}`;
  const apply = `${name}${ending}`;
  // No zone's own role has such a name, whatever the zone is called. The longest has the 64 characters that IAM takes.
  const dataRole = `${installation}-data-${zone}`;
  return { stack: name, role: name, dataRole, log: logOf(name), apply, applySlow: slowOf(apply) };
}

/** @param queue - the name or the URL of a zone's queue. @returns those of its dead letters. */
export function deadLettersOf(queue: string): string {
  return `${queue}-dead`;
}

/**
 * Finds what belongs to a zone by its queue, so that no variable has to name it.
 * @param url - of the queue `apply` of a zone.
 * @returns the URLs of the dead letters of its two queues, the name of its workers' log group, and the host and account of all.
 */
export function besideQueue(url: string) {
  const [place, queue] = [url.slice(0, url.lastIndexOf("/")), url.slice(url.lastIndexOf("/") + 1)];
  const log = logOf(queue.slice(0, -ending.length));
  return { place, deadLetters: deadLettersOf(url), slowDeadLetters: deadLettersOf(slowOf(url)), log };
}

/** @param zones - URLs of queues by zone. @returns the log groups of their workers, by the names of the functions. */
export function logGroupsOf(zones: Iterable<readonly [string, string]>): readonly (readonly [string, string])[] {
  return [...zones].map(([zone, url]) => [`apply-${zone}`, besideQueue(url).log]);
}

/**
 * The queues of the zones besides `home` as the stacks write them into environments, which Lambda limits to 4 KB: those that are
 * beside the queue of `home` by their names, and the others by their URLs.
 * @param text - `fixed=starling-zone-fixed-apply,spoke=https://...`; absent for none.
 * @returns URLs by zone.
 */
export function zoneQueues(text: string | undefined, home: string): ReadonlyMap<string, string> {
  return new Map([...namedTexts(text)].map(([zone, queue]) => [zone, new URL(queue, home).href]));
}

const ending = "-apply";

function slowOf(queue: string): string {
  return `${queue}-slow`;
}

function logOf(name: string): string {
  return `/starling/${name}`;
}
