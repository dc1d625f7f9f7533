import type { ClusterFaults } from "@starling/embedded-apiserver/faults";
import { describe, expect, test } from "vitest";
import { everyday, type FaultOptions, hostile, quiet } from "#local/aws/wire/fault-options.ts";
import { awsSettings, awsWords, withAwsSettings } from "#local/faults/aws-fault-settings.ts";
import { clusterKnobs, clusterSettings, withClusterSettings } from "#local/faults/cluster-fault-settings.ts";

const aws = (...settings: readonly string[]) => withAwsSettings(quiet, settings);
const cluster = (...settings: readonly string[]) => withClusterSettings({}, { target: "clusters/c", settings });

describe("the faults of the emulated AWS", () => {
  test.each([
    [["hostile"], hostile],
    [["everyday"], everyday],
    [["hostile", "quiet"], quiet],
    [["sqs.lose=0.1"], { ...quiet, sqs: { ...quiet.sqs, lose: 0.1 } }],
    [["sqs.lose=25%"], { ...quiet, sqs: { ...quiet.sqs, lose: 0.25 } }],
    [["hostile", "sqs.lose=off"], { ...hostile, sqs: { ...hostile.sqs, lose: 0 } }],
    [["dynamodb.indexLagMs=2s"], { ...quiet, dynamodb: { ...quiet.dynamodb, indexLagMs: 2000 } }],
    [["dynamodb.indexLagMs=150"], { ...quiet, dynamodb: { ...quiet.dynamodb, indexLagMs: 150 } }],
    [["sqs.maxDelaySeconds=3"], { ...quiet, sqs: { ...quiet.sqs, maxDelaySeconds: 3 } }],
    [["sqs.maxDelaySeconds=1m"], { ...quiet, sqs: { ...quiet.sqs, maxDelaySeconds: 60 } }],
  ] satisfies readonly (readonly [readonly string[], FaultOptions])[])(
    "the AWS settings %j set these faults",
    (settings, faults) => {
      expect(aws(...settings)).toEqual(faults);
    },
  );

  test.each([
    ["sqs.loose=1", "sqs.lose", "local faults set aws sqs.lose=1"],
    ["hostil", "hostile", "local faults set aws hostile"],
    ["latency=5ms", "it has quiet, everyday, hostile, dynamodb.", "NAME=VALUE"],
    ["constructor", "it has quiet", "NAME=VALUE"],
    ["sqs.lose=4", "expected a share of calls from 0 to 1", "sqs.lose=VALUE"],
    ["sqs.lose", "expected a share of calls from 0 to 1", "sqs.lose=VALUE"],
    ["dynamodb.indexLagMs=soon", "expected a duration such as 500ms", "dynamodb.indexLagMs=VALUE"],
    ["sqs.maxDelaySeconds=-1", "expected a duration such as 2s", "sqs.maxDelaySeconds=VALUE"],
    ["hostile=1", "aws has no fault", "local faults set aws hostile"],
  ])("the AWS setting %s is refused", (setting, message, next) => {
    const said = expect.stringContaining(message);
    const expected = { message: said, exit: "wrongInput", next: expect.stringContaining(next) };
    expect(() => aws(setting)).toThrow(expect.objectContaining(expected));
  });

  test("the settings of AWS faults are printed in the fewest words that set the same faults again", () => {
    for (const settings of [[], ["hostile"], ["everyday"], ["hostile", "sqs.lose=0.5"], ["s3.slowDown=0.2"]]) {
      expect(awsSettings(aws(...settings))).toEqual(settings);
    }
    expect(awsWords).toContain("sqs.lose");
  });
});

describe("the faults of a cluster", () => {
  const rows: readonly (readonly [readonly string[], ClusterFaults])[] = [
    [["latency=500ms"], { latency: { ms: 500 } }],
    [["latency=1s", "latency.jitter=200"], { latency: { ms: 1000, jitterMs: 200 } }],
    [["throttle=20%", "throttle.retryAfterSeconds=3"], { throttle: { probability: 0.2, retryAfterSeconds: 3 } }],
    [["throttle.next=5", "throttle.methods=PATCH,POST"], { throttle: { next: 5, methods: ["PATCH", "POST"] } }],
    [
      ["errors=503", "errors.share=0.5", "errors.phase=after"],
      { errors: { status: 503, probability: 0.5, phase: "after" } },
    ],
    [["resets=0.1", "resets.path=/secrets/"], { resets: { probability: 0.1, pathIncludes: "/secrets/" } }],
    [["certificate=expired", "network=hangs"], { certificate: "expired", network: "hangs" }],
    [["unavailableApis=v1beta1.metrics.k8s.io"], { unavailableApis: ["v1beta1.metrics.k8s.io"] }],
    [
      ['webhooks=[{"name":"w.example.com","does":"deny","message":"no"}]'],
      { webhooks: [{ name: "w.example.com", does: "deny", message: "no" }] },
    ],
    [["errors=503", "errors.share=0.5", "errors.share=off"], { errors: { status: 503 } }],
    [["errors=503", "errors.share=0.5", "errors=off", "latency=1"], { latency: { ms: 1 } }],
  ];
  test.each(rows)(
    "the cluster settings %j set these faults, and are printed so that they set them again",
    (settings, faults) => {
      expect(cluster(...settings)).toEqual(faults);
      expect(cluster(...clusterSettings(faults))).toEqual(
        // A fault of every request is printed with its probability.
        faults.throttle !== undefined && faults.throttle.probability === undefined
          ? { throttle: { ...faults.throttle, probability: 1 } }
          : faults,
      );
    },
  );

  test.each([
    ["latncy=5ms", "did you mean latency?", "local faults set clusters/c latency=5ms"],
    ["lose=1", "it has latency, latency.jitter, throttle", "NAME=VALUE"],
    ["latency=fast", "expected a duration such as 500ms", "latency=VALUE"],
    ["latency=20m", "latency of clusters/c: expected a duration", "latency=VALUE"],
    ["network=gone", "network of clusters/c: expected refused or hangs", "network=VALUE"],
    ["errors=200", "errors of clusters/c: expected a status from 500 to 599", "errors=VALUE"],
    ["errors.share=0.1", "clusters/c also needs errors=VALUE", "errors=503 …"],
    ["latency.jitter=1s", "clusters/c also needs latency=VALUE", "latency=100ms …"],
    ["throttle.methods=GTE", "throttle.methods of clusters/c: expected words", "throttle.methods=VALUE"],
    ["unavailableApis=metrics", "unavailableApis of clusters/c: expected APIServices", "unavailableApis=VALUE"],
    ["webhooks={", "expected a JSON list of webhooks", "webhooks=VALUE"],
    [
      'webhooks=[{"does":"deny"}]',
      "webhooks of clusters/c: expected a JSON list of webhooks (0.name",
      "webhooks=VALUE",
    ],
  ])("the cluster setting %s is refused", (setting, message, next) => {
    const said = expect.stringContaining(message);
    const expected = { message: said, exit: "wrongInput", next: expect.stringContaining(next) };
    expect(() => cluster(setting)).toThrow(expect.objectContaining(expected));
  });

  test("a setting keeps the other faults of the cluster as they are", () => {
    const before = cluster("latency=5ms", "throttle=0.5");
    expect(withClusterSettings(before, { target: "clusters/c", settings: ["throttle=off"] })).toEqual({
      latency: { ms: 5 },
    });
    expect(clusterKnobs).toContain("throttle.retryAfterSeconds");
  });
});
