/** Receivers as people apply, look at, trigger, suspend and delete them, and the deliveries of their senders in between. */
import { afterEach, beforeEach, expect, test } from "vitest";
import { webhookHandler } from "#functions/webhook/webhook-handler.ts";
import { receiverPath } from "#shared/fleet/receiver-id.ts";
import { type CliFixture, principal, startCliFixture } from "#test/integration/cli/cli-fixture.ts";
import { MemorySender } from "#test/support/memory-sender.ts";
import { noHttp } from "#test/support/no-http.ts";
import { recorded } from "#test/support/webhook-senders.ts";

const source = (name: string, namespace = "shop") => ({
  apiVersion: "starling.dev/v1alpha1",
  kind: "Source",
  metadata: { name, namespace, labels: { team: namespace } },
  spec: { git: { url: "https://github.com/acme/fleet", ref: { branch: "main" } } },
});
const receiver = (spec: object = {}, namespace = "shop") => ({
  apiVersion: "starling.dev/v1alpha1",
  kind: "Receiver",
  metadata: { name: "hook", namespace },
  spec: { provider: "github", sources: ["app"], secrets: ["starling/hooks/shop"], ...spec },
});

let cli: CliFixture;
const sender = new MemorySender();
beforeEach(async () => {
  cli = await startCliFixture();
  expect((await apply(source("app"), source("other"), source("app", "rival"), receiver())).code).toBe(0);
});
afterEach(() => cli.stop());

const apply = (...documents: readonly object[]) =>
  cli.run("apply -f - -q", { input: documents.map((one) => JSON.stringify(one)).join("\n---\n") });

/** Delivers a push as GitHub does, to the path of a URL. */
async function deliver(url: string) {
  const handler = webhookHandler({
    table: cli.table,
    sender,
    secrets: { read: async () => '{"token":"s3cret","namespaces":["shop"]}' },
    http: noHttp,
    clock: { now: () => new Date() },
    log: { info: () => undefined, warn: () => undefined, error: () => undefined },
    secretName: "starling/webhook",
  });
  const { headers, body } = recorded("github", "push");
  const { statusCode } = await handler({ rawPath: new URL(url).pathname, headers, body }, {});
  const polled = sender
    .take()
    .flatMap((message) => (message.to === "resolve" ? [message.source, ...(message.besides ?? [])] : []));
  return { statusCode, polled };
}

async function urlOf(name = "hook"): Promise<string> {
  const { out } = await cli.run(`get receiver ${name} -n shop -o json`);
  return JSON.parse(out).status.url;
}

test("the URL that a Receiver shows wakes its Sources, stays over changes, and ends with it [receiver.url]", async () => {
  const url = await urlOf();
  expect(url).toMatch(new RegExp(`^${cli.url}${receiverPath("")}[0-9a-f]{40}$`));
  const app = { namespace: "shop", name: "app" };
  expect(await deliver(url)).toEqual({ statusCode: 202, polled: [app] });

  await apply(receiver({ sources: [{ selector: { matchLabels: { team: "shop" } } }] }));
  expect(await urlOf()).toBe(url);
  expect((await deliver(url)).polled).toHaveLength(2);

  expect(await cli.run("delete receiver/hook -n shop", { answer: "n" })).toMatchObject({ code: 1 });
  const deleted = await cli.run("delete receiver/hook -n shop --yes");
  expect(deleted).toMatchObject({ code: 0, out: expect.stringContaining("receiver/hook deleted") });
  expect(await deliver(url)).toEqual({ statusCode: 404, polled: [] });
  await apply(receiver());
  expect(await urlOf()).not.toBe(url);
  expect(await deliver(url)).toEqual({ statusCode: 404, polled: [] });
});

test("a Receiver of another namespace has another URL, and cannot use a secret that is for this one", async () => {
  await apply(receiver({}, "rival"));
  const { items } = JSON.parse((await cli.run("get receivers -A -o json")).out);
  const urls = new Map<string, string>(
    items.map(({ metadata, status }: { metadata: { namespace: string }; status: { url: string } }) => [
      metadata.namespace,
      status.url,
    ]),
  );
  expect(urls.get("rival")).not.toBe(urls.get("shop"));
  expect(await deliver(urls.get("shop") ?? "")).toMatchObject({ statusCode: 202 });
  expect(await deliver(urls.get("rival") ?? "")).toEqual({ statusCode: 503, polled: [] });
});

test("`get` and `describe` show what a Receiver polls, and what is missing", async () => {
  expect((await cli.run("get rcv -n shop")).out).toMatch(
    /^NAME +PROVIDER +SOURCES +STATE +LAST DELIVERY +URL\nhook +github +app +Ready +- +http/,
  );
  await apply(receiver({ sources: ["none"] }));
  expect((await cli.run("get receivers -n shop")).out).toMatch(/^hook .*NotReady .*no Source none$/m);
  await apply(receiver({ sources: [{ selector: { matchLabels: { team: "x" } } }] }));
  const { out } = await cli.run("describe receiver/hook -n shop");
  expect(out).toMatch(/^Sources: +Sources with team=x$/m);
  expect(out).toMatch(/^Polls: +no Source: none exists$/m);
  expect(out).toMatch(/^Secrets: +starling\/hooks\/shop$/m);
  expect(out).toMatch(/^URL: +http:.*[0-9a-f]$/m);
  await apply(receiver({ provider: "quay" }));
  const quay = (await cli.run("describe receiver/hook -n shop")).out;
  expect(quay).toMatch(/^URL: +http:.*[0-9a-f]\?token=TOKEN$/m);
  expect(quay).toMatch(/^Token: +printf %s [0-9a-f]{40} \| openssl dgst/m);
});

test("`get` and `describe` show the last delivery and the last refusal", async () => {
  const url = await urlOf();
  expect((await cli.run("describe receiver/hook -n shop")).out).toMatch(/^Delivered: +none within 30 days$/m);
  await deliver(url);
  await apply(receiver({ secrets: ["starling/hooks/shop"] }, "rival"));
  const { items } = JSON.parse((await cli.run("get receivers -n rival -o json")).out);
  expect((await deliver(items[0].status.url)).statusCode).toBe(503);
  expect((await cli.run("get rcv -n shop")).out).toMatch(/^hook +github +app +Ready +\d+s +http/m);
  const { out } = await cli.run("describe receiver/hook -n shop");
  expect(out).toMatch(/^Delivered: +\d+s ago, push, polled 1 Source$/m);
  expect(out).not.toContain("Refused:");
  const refused = (await cli.run("describe receiver/hook -n rival")).out;
  expect(refused).toMatch(/^Delivered: +none within 30 days$/m);
  expect(refused).toMatch(/^Refused: +\d+s ago, answered 503 to push: .*is not for Receivers of the namespace rival/m);
});

test("`receiver trigger` polls without a sender, names who did it, and leaves suspended Sources alone [receiver.trigger]", async () => {
  expect(await cli.run("receiver trigger hook -n shop --reason INC-1")).toMatchObject({
    code: 0,
    out: "source/app polled\n",
  });
  expect(cli.log.at(-1)).toMatchObject({ audit: true, verb: "trigger", kind: "Receiver", name: "hook", principal });
  await cli.run("suspend source/app -n shop");
  expect(await cli.run("receiver trigger hook -n shop")).toMatchObject({
    code: 1,
    out: "source/app is suspended and was not polled (starling resume source/app)\n",
  });
  expect(await cli.run("receiver trigger none -n shop")).toMatchObject({
    code: 1,
    err: expect.stringContaining("Receiver shop/none does not exist"),
  });
});

test("a suspended Receiver refuses its senders and its trigger until it is resumed", async () => {
  const url = await urlOf();
  expect((await cli.run("suspend receiver/hook -n shop --until 2h --reason INC-2")).code).toBe(0);
  expect(await deliver(url)).toEqual({ statusCode: 503, polled: [] });
  expect((await cli.run("receiver trigger hook -n shop")).err).toContain("Receiver shop/hook is suspended");
  expect((await cli.run("describe receiver/hook -n shop")).out).toContain("starling resume receiver/hook -n shop");
  expect((await cli.run("resume receiver/hook -n shop")).code).toBe(0);
  expect((await deliver(url)).statusCode).toBe(202);
});

test("`reconcile` of a Receiver says what to type instead", async () => {
  const { code, err } = await cli.run("reconcile receiver/hook -n shop");
  expect(code).toBe(2);
  expect(err).toContain("run `starling receiver trigger hook -n shop` to poll its Sources");
});

test("`apply` refuses a Receiver without secrets or Sources, and `explain` explains its fields", async () => {
  for (const [spec, field] of [
    [{ secrets: [] }, "spec.secrets must name one secret"],
    [{ sources: [] }, "spec.sources must name at least one Source"],
    [{ events: ["issues"] }, "expected one of push, package, registry_package"],
  ] as const)
    expect(await apply(receiver(spec))).toMatchObject({ code: 2, err: expect.stringContaining(field) });
  expect((await cli.run("explain receiver.spec.secrets")).out).toContain("one or two secrets");
  expect((await cli.run("complete -- starling get rec")).out).toContain("receivers");
});
