import { randomBytes } from "node:crypto";

/** A principal and the access key it signs with. */
export interface AccessKey {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  /** Of temporary credentials; requests then carry it as `X-Amz-Security-Token`. */
  readonly sessionToken?: string;
  /** Of temporary credentials; from then on they are refused as expired. */
  readonly expiresAt?: Date;
  /** E.g. `arn:aws:iam::000000000000:user/ada` or `arn:aws:sts::000000000000:assumed-role/deployer/ci`. */
  readonly principalArn: string;
  /** Method and path, `GET/v1/*`, of what its policies let it invoke; left out: everything. */
  readonly invokes?: readonly string[];
}

/** Temporary credentials. */
export type SessionKey = Required<Omit<AccessKey, "invokes">>;

/** Everybody who may sign requests on this machine: people, the roles of the functions, and sessions of roles. */
export class Principals {
  readonly #keys = new Map<string, AccessKey>();

  constructor(keys: readonly AccessKey[] = []) {
    for (const key of keys) this.#keys.set(key.accessKeyId, key);
  }

  find(accessKeyId: string): AccessKey | undefined {
    return this.#keys.get(accessKeyId);
  }

  add(key: AccessKey): void {
    this.#keys.set(key.accessKeyId, key);
  }

  /** Ends temporary credentials before their time. */
  expire(accessKeyId: string): void {
    const key = this.#keys.get(accessKeyId);
    if (key?.sessionToken !== undefined) this.#keys.set(accessKeyId, { ...key, expiresAt: new Date(0) });
  }

  /** Temporary credentials, as STS and Lambda give them. */
  startSession(session: { readonly principalArn: string; readonly expiresAt: Date }): SessionKey {
    const key = {
      accessKeyId: `ASIA${randomBytes(8).toString("hex").toUpperCase()}`,
      secretAccessKey: randomBytes(30).toString("base64"),
      sessionToken: randomBytes(96).toString("base64"),
      ...session,
    };
    this.#keys.set(key.accessKeyId, key);
    return key;
  }
}
