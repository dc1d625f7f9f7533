/**
 * One row with the cordons of all clusters, so that the planner reads them at once. Each is an attribute of its own, which
 * the transaction that writes or deletes the Cluster sets or removes.
 */

import { defined } from "#shared/base/defined.ts";
import { statedText } from "#shared/fleet/rows/act-text.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import type { Cordoning } from "#shared/fleet/rows/object-rows.ts";
import { keyText, type Row, rowSchema } from "#shared/fleet/rows/row.ts";

export interface CordonsRow extends Row {
  readonly type: "Cordons";
}

/** A cordon, as the planner knows it. */
export interface Cordon extends Pick<Cordoning, "by" | "at" | "reason" | "until"> {
  readonly cluster: string;
}

const prefix = "cordon:";

/**
 * Belongs into the transaction that writes or deletes the Cluster.
 * @param cordoned - undefined: without a cordon from now on.
 * @param over - other clusters, whose cordons have ended.
 */
export function cordonUpdate(cluster: string, cordoned: Cordoning | undefined, over: readonly string[] = []) {
  const head = { type: "Cordons", schema: rowSchema };
  const common = { update: keys.cordonState, add: { version: 1 } };
  if (cordoned === undefined) return { ...common, set: head, remove: [attributeOf(cluster)] };
  const { by, at, reason, until } = cordoned;
  const cordon = { by, at, ...defined({ reason, until }) };
  const set = { ...head, [attributeOf(cluster)]: cordon };
  return { ...common, set, ...(over.length === 0 ? {} : { remove: over.map(attributeOf) }) };
}

function attributeOf(cluster: string): string {
  return `${prefix}${cluster}`;
}

/** Finds the cordons among rows that were read with their key, by the names of the clusters. Some may have ended. */
export function cordonsAmong(rows: readonly Row[]): readonly Cordon[] {
  const row = rows.find((one) => keyText(one) === keyText(keys.cordonState));
  const found = Object.entries(row ?? {}).flatMap(([attribute, cordon]): readonly Cordon[] => {
    if (!attribute.startsWith(prefix)) return [];
    return [{ cluster: attribute.slice(prefix.length), ...(cordon as Omit<Cordon, "cluster">) }];
  });
  return found.sort((a, b) => (a.cluster < b.cluster ? -1 : 1));
}

export function isCordoning({ until }: Pick<Cordon, "until">, now: Date): boolean {
  return until === undefined || until > now.toISOString();
}

/** The cordon of a cluster, while it is in force. */
export function cordonOf(cordons: readonly Cordon[], cluster: string, now: Date): Cordon | undefined {
  return cordons.find((one) => one.cluster === cluster && isCordoning(one, now));
}

/** `cordoned by ana: INC-1`. */
export function cordonText(cordon: Pick<Cordon, "by" | "reason">): string {
  return statedText("cordoned", cordon);
}
