/** Credentials fail while a set is applied. The cause decides whether the worker reports the cluster as unreachable. */

import { expect, test } from "vitest";
import { KubeConnection } from "#shared/adapters/kube/kube-connection.ts";
import type { ErrorCode } from "#shared/base/error-codes.ts";
import { StarlingError } from "#shared/base/errors.ts";
import { configMap, namespace } from "#test/support/cluster-fixture.ts";
import { namesOf, startPatientWorker } from "#test/support/cluster-worker.ts";
import { forEachTest } from "#test/support/for-tests.ts";

const worker = forEachTest(startPatientWorker);

const many = [namespace("shop"), ...Array.from({ length: 40 }, (_, index) => configMap(`shop/c${index}`))];
const gone = configMap("shop/gone");

/** A connector whose token can be read `times` times. */
function readable(times: number, code: ErrorCode) {
  const { credentials } = worker.endpoint;
  if (!("token" in credentials)) throw new Error("the fixture has no token");
  let left = times;
  const token = (options: { readonly refresh: boolean }) => {
    left -= 1;
    if (left < 0) throw new StarlingError(`it says ${code}`, { code, retry: "transient" });
    return credentials.token(options);
  };
  const connection = new KubeConnection({
    ...worker.endpoint,
    credentials: { token: async (options) => token(options) },
  });
  const connector = {
    connect: async (_cluster: unknown, deadline: Date) => connection.client({ deadlineMs: deadline.getTime() }),
    distrust() {},
  };
  return { connector, close: () => connection.close() };
}

test.each<[ErrorCode, string, string]>([
  ["SecretsUnavailable", "Unreachable", "SecretsUnavailable"],
  ["StsUnavailable", "Unreachable", "StsUnavailable"],
  ["EksUnavailable", "Unreachable", "EksUnavailable"],
  ["EksThrottled", "Retrying", "EksThrottled"],
  ["SecretNotFound", "Unreachable", "Unreachable"],
  ["RoleDenied", "Unreachable", "Unreachable"],
])(
  "the error %s of the credentials is reported with phase %s, whatever was applied before it",
  async (code, phase, reason) => {
    await worker.world.assign("web", [namespace("shop"), gone]);
    await worker.world.work();
    await worker.world.assign("web", many);
    for (const times of [0, 1, 20]) {
      const limited = readable(times, code);
      await worker.world.work({ connector: limited.connector });
      limited.close();
      const seen = await worker.observed();
      const expected = times === 20 || phase === "Retrying" ? reason : code;
      expect([times, seen.phase, seen.reason]).toEqual([times, phase, expected]);
      expect(seen.message).toContain(`it says ${code}`);
      expect(worker.members()).toContain("ConfigMap gone");
      worker.world.aheadMs += 700_000;
      if (phase === "Unreachable") await worker.world.assign("web", many);
    }
    await worker.recover(many);
    expect(worker.members()).toEqual(namesOf(many));
  },
);
