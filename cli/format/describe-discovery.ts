import { headText, pairsText } from "#cli/format/describe-object.ts";
import { conditionsText, fieldsText, sectionText } from "#cli/format/describe-text.ts";
import { formatTable } from "#cli/format/table.ts";
import type { DiscoveryObject } from "#shared/fleet/api/objects.ts";
import { formatTime } from "#shared/words/age.ts";

export function describeDiscovery(discovery: DiscoveryObject, now: Date): string {
  const { spec, status } = discovery;
  const { accounts, organization, regions, role, tags } = spec.eks;
  const { clusters, unseen = [], refused = [], forgotten = [] } = status;
  const unit =
    organization === undefined ? undefined : `${organization.ous.join(", ")} of account ${organization.account}`;
  return [
    headText(discovery, now),
    fieldsText([
      ["Accounts", accounts?.join(", ")],
      ["Organization", unit],
      ["Regions", regions.join(", ")],
      ["Tags", tagsText(tags)],
      ["Role", role.name],
      ["External id", status.externalId],
      ["Names", spec.name],
      ["Access", spec.access?.role?.name],
      ["Zone", spec.access?.zone],
      ["VPCs", pairsText(spec.access?.zonesByVpc)],
      ["Parameters", spec.values?.ssm?.path],
      ["Labels", pairsText(spec.labels?.fromTags)],
      ["Interval", spec.interval],
      ["Gone", goneText(spec.gone)],
      [
        "Clusters",
        clusters === undefined
          ? "not scanned yet"
          : `${clusters.found} found, ${clusters.refused} refused, ${clusters.unselected} no longer selected by tags, ${clusters.gone} gone`,
      ],
    ]),
    sectionText("Conditions", conditionsText(status.conditions, now)),
    sectionText(
      "Not scanned",
      listText(unseen.map(({ account, region, code, message }) => [account, region ?? "every region", code, message])),
    ),
    sectionText("Not registered", listText(refused.map(({ arn, reason, message }) => [arn, reason, message]))),
    sectionText(
      "Unregistered in the last day",
      listText(forgotten.map(({ cluster, arn, at }) => [cluster, arn, formatTime(at, now)])),
    ),
  ].join("");
}

function goneText(gone: DiscoveryObject["spec"]["gone"]): string {
  if (gone === undefined) return "clusters that are gone stay registered until a person deletes them";
  return `clusters that are gone are unregistered after ${gone.after}, at most ${gone.maxPerDay} a day`;
}

function tagsText(tags: DiscoveryObject["spec"]["eks"]["tags"]): string | undefined {
  if (tags === undefined) return undefined;
  const expressions = (tags.matchExpressions ?? []).map((each) => {
    const values = "values" in each ? ` (${each.values.join(",")})` : "";
    return `${each.key} ${each.operator}${values}`;
  });
  return [...(pairsText(tags.matchLabels)?.split(" ") ?? []), ...expressions].join(", ");
}

function listText(rows: readonly (readonly string[])[]): string {
  if (rows.length === 0) return "";
  const columns = (rows[0] ?? []).map(() => "");
  return formatTable({ columns, rows }, { headers: "hide", indent: "  " });
}
