/** How the pages read from the API. */

/**
 * Requests a path below `/v1` of the API, with the user's permissions.
 * @throws Refusal when the API refuses; any other Error when it does not answer.
 */
export type Ask = <T>(path: string, query?: Readonly<Record<string, string | undefined>>) => Promise<T>;

export interface RefusalDetails {
  /** The API's error code, such as `NotFound` or `Internal`. */
  readonly code?: string;
  /** The id of the request in the installation's logs: `starling logs --id`. */
  readonly correlationId?: string;
}

/** The API answered with an error. */
export class Refusal extends Error {
  /** The HTTP status. */
  readonly status: number;
  readonly code: string | undefined;
  readonly correlationId: string | undefined;

  constructor(status: number, message: string, { code, correlationId }: RefusalDetails = {}) {
    super(message);
    this.name = "Refusal";
    this.status = status;
    this.code = code;
    this.correlationId = correlationId;
  }
}

/** The answer, or undefined for an object that does not exist. */
export async function unlessNone<T>(answer: Promise<T>): Promise<T | undefined> {
  try {
    return await answer;
  } catch (error) {
    if (error instanceof Refusal && error.status === 404) return undefined;
    throw error;
  }
}
