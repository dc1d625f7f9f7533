/**
 * Observes the API servers on a busy day: the objects that git desires, the objects that exist, and the requests that
 * changed them. It reads Starling's own rows only at the end.
 */
import assert from "node:assert/strict";
import type { RequestRecord } from "@starling/embedded-apiserver";
import type { JsonObject } from "#shared/base/json.ts";
import { stringAt } from "#shared/kube/kube-object.ts";
import { parentNamespace } from "#shared/kube/parent-object.ts";
import { blindCalls } from "#test/support/blind-calls.ts";
import {
  busyPlaces,
  type Contents,
  type DesiredObject,
  desiredObject,
  type Folder,
  filesOf,
  homesOfAll,
  parts,
} from "#test/support/busy-fleet.ts";
import type { World } from "#test/support/e2e-world.ts";
import { handUserAgent } from "#test/support/kube-call.ts";
import { normalForm } from "#test/support/normal-form.ts";

/** The resourceVersions of the objects in one namespace of one cluster. */
type Snapshot = Readonly<Record<string, string>>;

export interface Witness {
  /** Must be called before each commit. @returns the files to commit. */
  committed(rollouts: Contents): Record<string, string | null>;
  /** Records that a person deleted an object, which may then be created once more. */
  gone(cluster: string, place: string): void;
  /** The resourceVersions of all objects in a namespace. */
  snapshot(cluster: string, home: string): Promise<Snapshot>;
  /** The requests since a time with which Starling wrote an object of this folder, or the cluster's memory of it. */
  writes(folder: Folder, clusters: readonly string[], since: Date): Promise<readonly string[]>;
  /**
   * Checks the invariants when everything is in sync. The cluster has exactly the objects that git desires. No object
   * was created twice or deleted by mistake. No call to the table was blind.
   */
  seesAllWell(): Promise<void>;
  /** Checks the end: the rows have the uid of each object, and no work is in progress. */
  seesTheEnd(): Promise<void>;
}

export function busyWitness(world: World): Witness {
  const files = new Map<string, string>(Object.entries(homesOfAll));
  /** `<cluster> <path>` of each object that left git and may be deleted. */
  const mayGo = new Set<string>();
  /** The uid by `<cluster> <title>`. */
  const uids = new Map<string, string>();
  /** The number of allowed creations by `<cluster> <path>`. */
  const mayBeMade = new Map<string, number>();
  const blind = new Set<string>();
  world.machine.proxy.intercept({
    before(call) {
      for (const each of blindCalls(call)) blind.add(each);
    },
  });

  /** For objects of both groups, the group that had them first owns them. */
  function desiredFrom(folder: Folder, cluster: string): readonly DesiredObject[] {
    const others = folder === "deploy" ? [] : desiredFrom("deploy", cluster);
    if (!busyPlaces[folder].includes(cluster)) return [];
    return [...files]
      .filter(([file]) => file.startsWith(`${folder}/`))
      .map(([, text]) => desiredObject(text))
      .filter(({ path }) => others.every((other) => other.path !== path));
  }

  function desired(cluster: string): readonly DesiredObject[] {
    return (Object.keys(parts) as Folder[]).flatMap((folder) => desiredFrom(folder, cluster));
  }

  function clusters(): readonly string[] {
    return world.fleet.connections().map(({ name }) => name);
  }

  /** An object that is no longer desired may be deleted. It may be created once more when git has it again. */
  function changes(change: () => void): void {
    const before = clusters().flatMap((cluster) => desired(cluster).map((object) => ({ cluster, ...object })));
    change();
    for (const { cluster, path, title } of before) {
      if (desired(cluster).some((object) => object.path === path)) continue;
      mayGo.add(`${cluster} ${path}`);
      mayMakeAgain(cluster, { path, title });
    }
  }

  function mayMakeAgain(cluster: string, { path, title }: Pick<DesiredObject, "path" | "title">): void {
    mayBeMade.set(`${cluster} ${path}`, (mayBeMade.get(`${cluster} ${path}`) ?? 1) + 1);
    uids.delete(`${cluster} ${title}`);
  }

  function own(): readonly RequestRecord[] {
    return world.fleet
      .requests()
      .filter(({ method, userAgent, dryRun }) => method !== "GET" && userAgent !== handUserAgent && !dryRun);
  }

  function checkDeletions(): void {
    const deleted = own().filter(({ method }) => method === "DELETE");
    const wrong = deleted.map(({ cluster, path }) => `${cluster} ${path}`).filter((each) => !mayGo.has(each));
    assert.deepEqual(wrong, [], "deleted although it is in git, or not Starling's to delete");
  }

  function checkCreations(): void {
    const made = own().filter(({ method, result }) => method === "PATCH" && result === 201);
    const counts = Map.groupBy(made, ({ cluster, path }) => `${cluster} ${path}`);
    const twice = [...counts].filter(([each, all]) => all.length > (mayBeMade.get(each) ?? 1)).map(([each]) => each);
    assert.deepEqual(twice, [], "made more often than it was taken away");
  }

  async function checkContents(cluster: string): Promise<void> {
    const objects = (await world.fleet.objects(cluster)).filter(isFromGit);
    const found = objects.map((object) => ({ title: titleOf(object), data: object.data })).sort(byTitle);
    const expected = desired(cluster)
      .map(({ title, data }) => ({ title, data }))
      .sort(byTitle);
    assert.deepEqual(found, expected, `${cluster} has what git wants there, and nothing else`);
    for (const object of objects) {
      const key = `${cluster} ${titleOf(object)}`;
      const uid = stringAt(object, "metadata", "uid") ?? "";
      assert.equal(uid, uids.get(key) ?? uid, `${key} is another object than before`);
      uids.set(key, uid);
    }
  }

  return {
    committed(rollouts) {
      const changed = filesOf(rollouts);
      changes(() => {
        for (const [file, text] of Object.entries(changed)) {
          if (text === null) files.delete(file);
          else files.set(file, text);
        }
      });
      return changed;
    },
    gone(cluster, place) {
      const object = desired(cluster).find(({ title }) => title === `ConfigMap ${place}`);
      if (object !== undefined) mayMakeAgain(cluster, object);
    },
    async snapshot(cluster, home) {
      const objects = (await world.fleet.objects(cluster)).filter((object) => isIn(object, home));
      return Object.fromEntries(
        objects.map((object) => [titleOf(object), stringAt(object, "metadata", "resourceVersion") ?? ""]),
      );
    },
    async writes(folder, on, since) {
      const { home, sync } = parts[folder];
      const paths = new Set<string>();
      for (const cluster of on) {
        const parent = (await world.fleet.objects(cluster)).find((object) => isParentOf(object, sync));
        if (parent !== undefined) paths.add(`${cluster} ${pathOfParent(parent)}`);
      }
      return own()
        .filter(({ cluster, at }) => on.includes(cluster) && at > since.getTime())
        .filter(({ cluster, path }) => isBelow(path, home) || paths.has(`${cluster} ${path}`))
        .map(({ cluster, method, path }) => `${cluster} ${method} ${path}`);
    },
    async seesAllWell() {
      assert.deepEqual([...blind], [], "written over, or read, whatever somebody else wrote meanwhile");
      checkDeletions();
      checkCreations();
      for (const cluster of clusters()) await checkContents(cluster);
    },
    async seesTheEnd() {
      const { rows } = await normalForm(world);
      for (const folder of Object.keys(parts) as Folder[]) {
        for (const cluster of busyPlaces[folder]) {
          const { observed } = rows[`CL#${cluster}|SYNC#shop#${parts[folder].sync}`] as SyncForm;
          const expected = desiredFrom(folder, cluster)
            .map(({ title }) => ({ object: title, is: `uid of ${cluster} ${title}` }))
            .sort(byObject);
          const members = observed?.members.map(({ object, is }) => ({ object, is })).toSorted(byObject);
          assert.deepEqual(members, expected, `what the inventory of ${folder} on ${cluster} knows`);
          assert.deepEqual(observed?.about, { newestAttempt: true, newestApplied: true }, `${folder} on ${cluster}`);
        }
      }
      const open = Object.entries(rows).filter(([, row]) => isUnderWay(row));
      assert.deepEqual(open, [], "what is still under way");
    },
  };
}

interface SyncForm {
  readonly observed?: {
    readonly members: readonly { readonly object: string; readonly is: string }[];
    readonly about: unknown;
  };
}

function isUnderWay(row: unknown): boolean {
  const { type = "", phase = "" } = row as { readonly type?: string; readonly phase?: string };
  if (type === "StageRun") return phase !== "Passed" && phase !== "Superseded";
  return type === "Slot" || type === "CatchUp";
}

function byTitle(a: { readonly title: string }, b: { readonly title: string }): number {
  return a.title < b.title ? -1 : 1;
}

function byObject(a: { readonly object: string }, b: { readonly object: string }): number {
  return a.object < b.object ? -1 : 1;
}

const homes: ReadonlySet<string> = new Set(Object.values(parts).map(({ home }) => home));

function isFromGit(object: JsonObject): boolean {
  const name = stringAt(object, "metadata", "name") ?? "";
  if (object.kind === "Namespace") return homes.has(name);
  const home = stringAt(object, "metadata", "namespace") ?? "";
  return object.kind === "ConfigMap" && homes.has(home) && name !== "kube-root-ca.crt";
}

function isIn(object: JsonObject, home: string): boolean {
  return (
    isFromGit(object) && (stringAt(object, "metadata", "namespace") ?? stringAt(object, "metadata", "name")) === home
  );
}

function isParentOf(object: JsonObject, sync: string): boolean {
  if (stringAt(object, "metadata", "namespace") !== parentNamespace) return false;
  return stringAt(object, "metadata", "annotations", "starling.dev/sync")?.endsWith(`/${sync}`) === true;
}

function pathOfParent(object: JsonObject): string {
  return `/api/v1/namespaces/${parentNamespace}/configmaps/${stringAt(object, "metadata", "name")}`;
}

function isBelow(path: string, home: string): boolean {
  return path === `/api/v1/namespaces/${home}` || path.startsWith(`/api/v1/namespaces/${home}/`);
}

function titleOf(object: JsonObject): string {
  const home = stringAt(object, "metadata", "namespace");
  return `${object.kind} ${home === undefined ? "" : `${home}/`}${stringAt(object, "metadata", "name")}`;
}
