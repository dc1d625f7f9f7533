import { setTimeout as sleep } from "node:timers/promises";
import { type JsonObject, parseJson, stringifyJson } from "#shared/base/json.ts";
import { type ManifestObject, stringAt } from "#shared/kube/kube-object.ts";
import type { Ground } from "#test/bench/ground.ts";
import type { RawCluster } from "#test/bench/kube-requests.ts";
import { pathOfObject } from "#test/bench/object-paths.ts";

const name = "bench.example.com";
const rewritten = "by-policy";
const policies = "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicies";
const bindings = "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicybindings";
const takesEffectWithinMs = 60_000;

/**
 * While `write` runs, an admission rule sets `data.mode` of every written ConfigMap. It is a MutatingAdmissionPolicy on
 * a real API server and a webhook fault on an embedded one.
 */
export async function whileRewriting(
  { cluster, setFaults }: Ground,
  object: ManifestObject,
  write: () => Promise<unknown>,
): Promise<void> {
  if (setFaults !== undefined) {
    const patch = [{ op: "replace", path: "/data/mode", value: rewritten }];
    await setFaults({ webhooks: [{ name, kinds: ["ConfigMap"], does: "rewrite", patch }] });
    await write();
    return setFaults({});
  }
  const create = (path: string, body: JsonObject) =>
    cluster.send({ method: "POST", path, contentType: "application/json", body: stringifyJson(body) });
  await create(policies, policy);
  await create(bindings, binding);
  await until(async () => (await tried(cluster, object)) === rewritten, "the admission policy");
  await write();
  await cluster.send({ method: "DELETE", path: `${bindings}/${name}` });
  await cluster.send({ method: "DELETE", path: `${policies}/${name}` });
  await until(async () => (await tried(cluster, object)) !== rewritten, "the end of the admission policy");
}

/** The value of `data.mode` after a dry run with another value. */
async function tried(cluster: RawCluster, object: ManifestObject): Promise<string | undefined> {
  const answer = await cluster.send({
    method: "PATCH",
    path: `${pathOfObject(object)}?dryRun=All`,
    contentType: "application/merge-patch+json",
    body: stringifyJson({ data: { mode: "tried" } }),
  });
  return stringAt(parseJson(answer), "data", "mode");
}

/** Polls until the condition is true. @throws Error with the name of the condition after a minute. */
export async function until(isSo: () => Promise<boolean>, what: string): Promise<void> {
  const deadline = Date.now() + takesEffectWithinMs;
  while (!(await isSo())) {
    if (Date.now() > deadline) throw new Error(`${what} took no effect within ${takesEffectWithinMs} ms`);
    await sleep(100);
  }
}

const policy: JsonObject = {
  apiVersion: "admissionregistration.k8s.io/v1",
  kind: "MutatingAdmissionPolicy",
  metadata: { name },
  spec: {
    matchConstraints: {
      resourceRules: [{ apiGroups: [""], apiVersions: ["v1"], operations: ["UPDATE"], resources: ["configmaps"] }],
    },
    failurePolicy: "Fail",
    reinvocationPolicy: "Never",
    mutations: [
      {
        patchType: "ApplyConfiguration",
        applyConfiguration: { expression: `Object{data: {"mode": "${rewritten}"}}` },
      },
    ],
  },
};

const binding: JsonObject = {
  apiVersion: "admissionregistration.k8s.io/v1",
  kind: "MutatingAdmissionPolicyBinding",
  metadata: { name },
  spec: { policyName: name },
};
