/** Parameter Store, reduced to reads of values by path. */
import { type ListingRequest, pageOf } from "#local/aws/eks/listing-operations.ts";
import { StsRefusal } from "#local/aws/iam/sts-operations.ts";
import { defined } from "#shared/base/defined.ts";

export interface LocalParameter {
  readonly type: "String" | "StringList" | "SecureString";
  readonly value: string;
}

/** The parameters of every account and region, by full name. */
export class ParameterStore {
  readonly #parameters = new Map<string, Map<string, LocalParameter>>();

  put({ accountId, region }: Place, name: string, parameter: LocalParameter): void {
    const place = `${accountId} ${region}`;
    this.#parameters.set(place, new Map(this.#parameters.get(place)).set(name, parameter));
  }

  delete({ accountId, region }: Place, name: string): void {
    this.#parameters.get(`${accountId} ${region}`)?.delete(name);
  }

  list({ accountId, region }: Place): readonly (readonly [string, LocalParameter])[] {
    return [...(this.#parameters.get(`${accountId} ${region}`) ?? [])];
  }
}

type Place = Pick<ListingRequest, "accountId" | "region">;

interface ByPathInput {
  readonly Path?: string;
  readonly Recursive?: boolean;
  readonly WithDecryption?: boolean;
  readonly MaxResults?: number;
  readonly NextToken?: string;
}

const mostInPage = 10;

/** `GetParametersByPath`. @throws StsRefusal */
export function parametersByPath({ operation, input, ...place }: ListingRequest, store: ParameterStore): object {
  const {
    Path = "",
    Recursive = false,
    WithDecryption = false,
    MaxResults = mostInPage,
    NextToken,
  } = input as ByPathInput;
  if (operation !== "GetParametersByPath") throw new StsRefusal("UnknownOperationException", operation, 400);
  if (!Path.startsWith("/") || MaxResults < 1 || MaxResults > mostInPage) {
    const message = `The parameter path has to begin with a slash, and MaxResults is 1-${mostInPage}: ${Path}, ${MaxResults}`;
    throw new StsRefusal("ValidationException", message, 400);
  }
  const folder = Path.endsWith("/") ? Path : `${Path}/`;
  const below = store
    .list(place)
    .filter(([name]) => name.startsWith(folder) && (Recursive || !name.slice(folder.length).includes("/")));
  const { page, next } = pageOf(below, { after: NextToken, size: MaxResults, key: ([name]) => name });
  const shown = ({ type, value }: LocalParameter) =>
    type === "SecureString" && !WithDecryption ? Buffer.from(`KMS:${value.length}`).toString("base64") : value;
  return {
    Parameters: page.map(([Name, parameter]) => ({ Name, Type: parameter.type, Value: shown(parameter), Version: 1 })),
    ...defined({ NextToken: next }),
  };
}
