import { expect, test } from "vitest";
import { besideQueue, deadLettersOf, zoneParts, zoneQueues } from "#shared/fleet/zone-parts.ts";

const home = "https://sqs.eu-central-1.amazonaws.com/111122223333/starling-control-ToApply";

test("queues are beside that of home by their names, and elsewhere by their URLs", () => {
  const far = "https://sqs.eu-west-1.amazonaws.com/444455556666/starling-zone-far-apply";
  expect([...zoneQueues(`fixed=starling-zone-fixed-apply,far=${far}`, home)]).toEqual([
    ["fixed", "https://sqs.eu-central-1.amazonaws.com/111122223333/starling-zone-fixed-apply"],
    ["far", far],
  ]);
  expect(zoneQueues(undefined, home)).toEqual(new Map());
});

test.each(["fixed", "a-apply", "z"])("the dead letters and the log of zone %s follow from its queue", (zone) => {
  const place = "https://sqs.eu-central-1.amazonaws.com/111122223333";
  const parts = zoneParts("starling", zone);
  expect(besideQueue(`${place}/${parts.apply}`)).toEqual({
    place,
    deadLetters: `${place}/${deadLettersOf(parts.apply)}`,
    slowDeadLetters: `${place}/${deadLettersOf(parts.applySlow)}`,
    log: parts.log,
  });
});

test("no role of a zone has the name of another zone's data role, and the longest names fit into IAM and SQS", () => {
  expect(zoneParts("starling", "a-data").role).not.toBe(zoneParts("starling", "a").dataRole);
  const { role, dataRole, applySlow } = zoneParts("i".repeat(40), "z".repeat(18));
  expect([role, dataRole].map(({ length }) => length)).toEqual([64, 64]);
  expect(deadLettersOf(applySlow)).toHaveLength(80);
});
