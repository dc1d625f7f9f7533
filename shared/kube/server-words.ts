/**
 * Explains unclear messages of API servers, and puts the explanation before the message. The texts are those of
 * kube-apiserver 1.36.
 */

/** Pairs of a server's message and its explanation. */
const known: readonly (readonly [RegExp, (found: RegExpExecArray) => string])[] = [
  [
    /^Operation cannot be fulfilled on .*the object has been modified/,
    () => "another writer changed the object at the same time; Starling reads it and tries again",
  ],
  [
    /^Apply failed with \d+ conflicts?: conflicts? with "([^"]+)"/,
    ([, manager = ""]) => `${manager} owns fields of the object and keeps them`,
  ],
  [
    /^namespaces "([^"]+)" not found$/,
    ([, name = ""]) =>
      `Namespace ${name} does not exist; add it to the manifests, or set createNamespace in the template`,
  ],
  [/^etcdserver: /, () => "the cluster's store (etcd) has a problem; Starling tries again"],
  [/^the server could not find the requested resource$/, () => "the cluster does not serve the kind in this version"],
  [
    /failed calling webhook "([^"]+)"/,
    ([, name = ""]) => `the webhook ${name} does not answer; check that its Pods run`,
  ],
  [
    /conversion webhook for ([^,]+?)(?: failed|,)/,
    ([, kind = ""]) => `the conversion webhook of ${kind} does not answer; check that its Pods run`,
  ],
];

/** @returns undefined for an empty message; other messages unchanged. */
export function serverWords(message: string): string | undefined {
  if (message === "") return undefined;
  for (const [form, words] of known) {
    const found = form.exec(message);
    if (found !== null) return `${words(found)} (${message})`;
  }
  return message;
}
