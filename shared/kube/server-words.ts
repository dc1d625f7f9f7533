/** What API servers say that tells a person little, with what it means before it. Texts of kube-apiserver 1.36. */

/** Legend: what the server says, and what it means to whoever keeps a cluster in sync. */
const known: readonly (readonly [RegExp, (found: RegExpExecArray) => string])[] = [
  [
    /^Operation cannot be fulfilled on .*the object has been modified/,
    () => "somebody else changed it in between; it is read and tried again",
  ],
  [
    /^Apply failed with \d+ conflicts?: conflicts? with "([^"]+)"/,
    ([, manager = ""]) => `${manager} holds fields of it and does not give them up`,
  ],
  [
    /^namespaces "([^"]+)" not found$/,
    ([, name = ""]) => `there is no Namespace ${name}; put it among the manifests, or let the template make it`,
  ],
  [/^etcdserver: /, () => "the cluster's own store (etcd) has trouble; it is tried again"],
  [
    /^the server could not find the requested resource$/,
    () => "the cluster does not know the kind, or not in this version",
  ],
  [
    /failed calling webhook "([^"]+)"/,
    ([, name = ""]) => `the webhook ${name} does not answer; does what serves it run?`,
  ],
  [
    /conversion webhook for ([^,]+?)(?: failed|,)/,
    ([, kind = ""]) => `the webhook that converts ${kind} does not answer`,
  ],
];

/** @returns undefined for no words at all; others that say it themselves as they are. */
export function serverWords(message: string): string | undefined {
  if (message === "") return undefined;
  for (const [form, words] of known) {
    const found = form.exec(message);
    if (found !== null) return `${words(found)} (${message})`;
  }
  return message;
}
