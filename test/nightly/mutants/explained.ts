import type { MutantText } from "#test/nightly/mutants/mutant-text.ts";

/** A mutant that no test below e2e kills, and why that is so. */
export interface ExplainedMutant extends MutantText {
  readonly reason: string;
}

/** Legend: file, the line as it is, what becomes of it, why no test sees it. */
const survivors: readonly (readonly [string, string, string, string])[] = [
  [
    "shared/fleet/sources/next-resolve.ts",
    "return status.attemptedAt < fetched && fetched < listed ? fetched : listed;",
    "return status.attemptedAt < fetched && fetched <= listed ? fetched : listed;",
    "of two equal times either is right",
  ],
  [
    "shared/fleet/rows/event-row.ts",
    'identity: [row.uid, "drift"],',
    'identity: [row.uid, ""],',
    "any text will do: the other events of a Sync have four parts",
  ],
  [
    "shared/fleet/rows/row-size.ts",
    "return membersBytes(row) - Object.keys(row).length * elementBytes;",
    "return membersBytes(row) - Object.keys(row).length / elementBytes;",
    "an element costs one byte",
  ],
  [
    "shared/kube/membership.ts",
    'for (const option of (all[name] ?? "").split(",")) {',
    'for (const option of (all[name] ?? "Stryker was here!").split(",")) {',
    "any text that is no option keeps nothing",
  ],
  [
    "shared/kube/parent-object.ts",
    'installationId: annotations[annotation.installation] ?? "",',
    'installationId: annotations[annotation.installation] ?? "Stryker was here!",',
    "any text that is no installation's id is foreign",
  ],
  [
    "shared/kube/parent-object.ts",
    'syncUid: annotations[annotation.syncUid] ?? "",',
    'syncUid: annotations[annotation.syncUid] ?? "Stryker was here!",',
    "any text that is no Sync's uid is foreign",
  ],
  [
    "shared/kube/parent-object.ts",
    'const digests = Array.isArray(list) ? list.filter((digest) => typeof digest === "string") : [];',
    'const digests = Array.isArray(list) ? list.filter((digest) => typeof digest === "string") : ["Stryker was here"];',
    "what is no digest is left out below",
  ],
  [
    "shared/kube/engine/deletion-guards.ts",
    'const group = stringAt(definition, "spec", "group") ?? "";',
    'const group = stringAt(definition, "spec", "group") ?? "Stryker was here!";',
    "no API server takes a definition without a group",
  ],
  [
    "shared/kube/engine/deletion-guards.ts",
    "if (found.length === 0) return;",
    "if (false) return;",
    "it saves requests: of nothing found nothing is left over",
  ],
  [
    "shared/adapters/aws/dynamo-table.ts",
    '"",',
    '"Stryker was here!",',
    "what is removed has no value, and so nothing to separate it from",
  ],
  [
    "shared/adapters/net/address-rules.ts",
    'callback(error, "");',
    'callback(error, "Stryker was here!");',
    "whoever is given an error looks at no address",
  ],
  [
    "shared/adapters/aws/s3-blob-store.ts",
    "if (error instanceof StarlingError) throw error;",
    "if (false) throw error;",
    "it comes out as it is below, too, as what S3 did not say",
  ],
  [
    "shared/kube/engine/cluster-uid.ts",
    'const system = await client.get(namespaceKind, { namespace: "", name: "kube-system" }, { metadataOnly: true });',
    'const system = await client.get(namespaceKind, { namespace: "", name: "kube-system" }, {});',
    "a Namespace in full is a few bytes more",
  ],
  [
    "shared/kube/engine/apply-object.ts",
    'if (!("plural" in kind)) return false;',
    'if (!("plural" in kind)) return true;',
    "for the compiler: every API server serves Jobs",
  ],
  [
    "shared/kube/engine/ensure-parent.ts",
    'kind: "Namespace",',
    'kind: "",',
    "an API server knows by the path what is created",
  ],
  [
    "functions/api/api-handler.ts",
    "if (bytes <= maxAnswerBytes) return given;",
    "if (true) return given;",
    "a net below the others: lists are cut before, and no object is so large",
  ],
  [
    "functions/api/forget-syncs.ts",
    'return rows.filter((row) => row.type === "SyncOnCluster");',
    "return rows.filter((row) => true);",
    "what cannot be read has no name, and is asked for by none",
  ],
  [
    "functions/api/freezes.ts",
    "const share = Math.max(10, Math.ceil(messages.length / senders));",
    "const share = Math.max(10, Math.ceil(messages.length * senders));",
    "how many send at once is a matter of speed: everybody is told",
  ],
  [
    "functions/apply/worker/work-cluster.ts",
    "if (wanted.size === 0) return { subjects: new Map(), unread: [] };",
    "if (false) return { subjects: new Map(), unread: [] };",
    "for no keys there is no call",
  ],
  [
    "shared/adapters/git/packet-reader.ts",
    "const bytes = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);",
    "const bytes = false ? chunk : Buffer.concat([this.#rest, chunk]);",
    "it saves a copy: of nothing and a chunk comes the chunk",
  ],
  [
    "shared/adapters/git/git-objects.ts",
    "if (space > 0 && !headers.has(name)) headers.set(name, line.slice(space + 1));",
    "if (space >= 0 && !headers.has(name)) headers.set(name, line.slice(space + 1));",
    "nobody asks for a header without a name",
  ],
  [
    "shared/adapters/git/git-objects.ts",
    'const oid = headersOf(object).get(header) ?? "";',
    'const oid = headersOf(object).get(header) ?? "Stryker was here!";',
    "any text that is no object's id is refused",
  ],
  [
    "shared/adapters/git/git-objects.ts",
    'const author = identityOf(headers.get("author") ?? "");',
    'const author = identityOf(headers.get("author") ?? "Stryker was here!");',
    "of a text without < and > nothing is read",
  ],
  [
    "shared/adapters/git/git-objects.ts",
    'const committer = identityOf(headers.get("committer") ?? "");',
    'const committer = identityOf(headers.get("committer") ?? "Stryker was here!");',
    "of a text without < and > nothing is read",
  ],
  [
    "shared/adapters/git/git-objects.ts",
    'if (end < 0 || next > tree.length) throw malformed("a tree of the repository breaks off");',
    'if (end <= 0 || next > tree.length) throw malformed("a tree of the repository breaks off");',
    "a name ends behind the space before it",
  ],
  [
    "shared/adapters/git/pace.ts",
    "return performance.now() >= this.#turnEndsAt;",
    "return performance.now() > this.#turnEndsAt;",
    "of two equal times either is right",
  ],
  [
    "shared/adapters/git/pace.ts",
    "if (now > this.#endsAt) {",
    "if (now >= this.#endsAt) {",
    "of two equal times either is right",
  ],
  [
    "shared/adapters/git/pack-objects.ts",
    "this.#contents.set(offset, content);",
    ";",
    "a content that is forgotten is made again",
  ],
  [
    "shared/adapters/git/pack-objects.ts",
    "this.#cache.set(object.packed.offset, content);",
    ";",
    "a content that is forgotten is made again",
  ],
  [
    "shared/adapters/git/pack-objects.ts",
    "this.#contents.delete(offset);",
    ";",
    "which content is forgotten first is a matter of speed",
  ],
  [
    "shared/adapters/git/pack-objects.ts",
    "if (content === undefined) return undefined;",
    "if (false) return undefined;",
    "what was never kept is made again, and then kept by nobody: a matter of speed",
  ],
  [
    "shared/adapters/git/pack-objects.ts",
    'if (content === undefined) throw malformed("an object of the pack has no content");',
    'if (false) throw malformed("an object of the pack has no content");',
    "for the compiler: a chain has its first content",
  ],
  [
    "shared/adapters/git/pack-objects.ts",
    'const base = packed.base ?? "";',
    'const base = packed.base ?? "Stryker was here!";',
    "for the compiler: a delta has its base",
  ],
  [
    "shared/adapters/git/pack-inflate.ts",
    "chunkSize: Math.max(size + 1, minChunkBytes),",
    "chunkSize: Math.max(size - 1, minChunkBytes),",
    "how many chunks it takes is a matter of speed",
  ],
  [
    "shared/adapters/kube/kind-catalog.ts",
    '{ method: "GET", path: "/apis", secret: false },',
    '{ method: "", path: "/apis", secret: false },',
    "what is said names the APIService, not the request",
  ],
  [
    "shared/adapters/kube/kind-catalog.ts",
    '{ method: "GET", path: "/apis", secret: false },',
    '{ method: "GET", path: "", secret: false },',
    "what is said names the APIService, not the request",
  ],
  [
    "shared/adapters/git/pack-objects.ts",
    "this.#cache.set(each.packed.offset, content);",
    ";",
    "a content that is forgotten is made again",
  ],
  [
    "shared/adapters/git/isomorphic-git-remote.ts",
    'let common = prefixes[0] ?? "";',
    'let common = prefixes[0] ?? "Stryker was here!";',
    "for the compiler: nobody lists by no prefix",
  ],
  [
    "shared/adapters/kube/kube-transport.ts",
    'readonly code = "ECONNRESET";',
    'readonly code = "";',
    "of the net below the others: it is transient with any code",
  ],
  [
    "shared/adapters/kube/kube-transport.ts",
    'const code = cause instanceof Error && "code" in cause && typeof cause.code === "string" ? cause.code : "EUNKNOWN";',
    'const code = cause instanceof Error && "code" in cause || typeof cause.code === "string" ? cause.code : "EUNKNOWN";',
    "for the compiler: errors of connections have a code",
  ],
  [
    "shared/adapters/kube/kube-transport.ts",
    "response.destroy(body.pieces > maxPieces ? new BodyInPieces() : new BodyTooLarge(maxBytes));",
    "response.destroy(body.pieces >= maxPieces ? new BodyInPieces() : new BodyTooLarge(maxBytes));",
    "where it is the last piece that makes it too large, either is right",
  ],
  [
    "shared/adapters/kube/kube-transport.ts",
    'sent.on("close", () => {',
    'sent.on("close", () => {});',
    "a net below the others: every end that Node is known to make of a request is an error or an upgrade",
  ],
  [
    "shared/kube/engine/resolve-objects.ts",
    'const group = stringAt(definition, "spec", "group") ?? "";',
    'const group = stringAt(definition, "spec", "group") ?? "Stryker was here!";',
    "no API server takes a definition without a group",
  ],
  [
    "functions/apply/verbs/look-at-health.ts",
    "return withheld === undefined || drift === undefined || !isDrifted ? {} : { drift, withheld };",
    "return withheld === undefined || false || !isDrifted ? {} : { drift, withheld };",
    "for the compiler: what has drifted has its drift",
  ],
  [
    "shared/adapters/kube/kube-answers.ts",
    "Number.isFinite(retryAfter) && retryAfter > 0 ? { retryAfterSeconds: retryAfter } : {},",
    "Number.isFinite(retryAfter) && true ? { retryAfterSeconds: retryAfter } : {},",
    "how long it waits is left to chance, and to wait for nothing is in it",
  ],
  [
    "functions/apply/worker/turns.ts",
    "return placed.sort((a, b) => (a.place < b.place ? -1 : 1)).map(({ row }) => row);",
    "return placed.sort((a, b) => (a.place <= b.place ? -1 : 1)).map(({ row }) => row);",
    "no two places are equal: a name is in each",
  ],
  [
    "functions/apply/worker/turns.ts",
    "return later(since > deaths.at ? since : deaths.at, headStartSeconds);",
    "return later(since >= deaths.at ? since : deaths.at, headStartSeconds);",
    "of two equal times either is right",
  ],
  [
    "functions/apply/lease/lease.ts",
    "if (found.leaseUntil !== undefined && found.leaseUntil >= now) return undefined;",
    "if (found.leaseUntil !== undefined && found.leaseUntil > now) return undefined;",
    "at its very end nobody can take it: the row is asked the same",
  ],
  [
    "functions/apply/lease/held-lease.ts",
    "this.#timer.unref();",
    ";",
    "a net below the other: whoever works stops it in the end",
  ],
  [
    "functions/apply/worker/work-cluster.ts",
    "if (syncs.every((row) => heldBy(row) === undefined)) return false;",
    "if (syncs.every((row) => heldBy(row) === undefined)) return true;",
    "where a freeze holds nothing there is nothing that it lets go",
  ],
  [
    "shared/kube/engine/core-kinds.ts",
    'export const namespaceKind = coreKind("Namespace", "namespaces", { namespaced: false });',
    'export const namespaceKind = coreKind("Namespace", "namespaces", { namespaced: true });',
    "it is asked for without a namespace, and so at the same path",
  ],
  [
    "shared/kube/engine/namespace-furniture.ts",
    "if (copies.has(name) && (await client.get(kind, { namespace, name }, { metadataOnly: true })) === undefined) {",
    "if (copies.has(name) && (await client.get(kind, { namespace, name }, {})) === undefined) {",
    "whether it is there the whole object says, too, in more bytes",
  ],
];

export const explainedMutants: readonly ExplainedMutant[] = survivors.map(([file, code, mutated, reason]) => ({
  file,
  code,
  mutated,
  reason,
}));
