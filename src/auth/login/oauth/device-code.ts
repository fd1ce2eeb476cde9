/** Logging in on another device: RFC 8628. */
import { initiateDeviceAuthorization, pollDeviceAuthorizationGrant } from "openid-client";
import type { OAuthCredential } from "../contract.ts";
import { LoginError } from "../errors.ts";
import type { AuthorizationServer } from "./authorization-server.ts";
import { loginError } from "./failure.ts";
import { requestParameters, type TokenRequest, toCredential } from "./tokens.ts";

export interface DeviceCode {
  readonly userCode: string;
  readonly verificationUri: string;
  /** With the code in it, where the server offers that. */
  readonly completeUri: string | undefined;
  readonly expiresInSeconds: number;
}

export interface DeviceOptions {
  readonly onCode: (code: DeviceCode) => void;
  readonly signal: AbortSignal;
}

export async function logInByDevice(
  server: AuthorizationServer,
  request: TokenRequest,
  { onCode, signal }: DeviceOptions,
): Promise<OAuthCredential> {
  if (server.metadata.device_authorization_endpoint === undefined) {
    throw new LoginError("unsupported", `${server.metadata.issuer} does not offer logging in on another device.`);
  }
  try {
    const configuration = server.configure(request.client);
    const begun = await initiateDeviceAuthorization(configuration, requestParameters(request));
    onCode({
      userCode: begun.user_code,
      verificationUri: begun.verification_uri,
      completeUri: begun.verification_uri_complete,
      expiresInSeconds: begun.expires_in,
    });
    const resource = request.resource === undefined ? {} : { resource: request.resource };
    const tokens = await pollDeviceAuthorizationGrant(configuration, begun, resource, { signal });
    return toCredential("device-code", server, request, tokens);
  } catch (error) {
    throw loginError(error, server.metadata.issuer);
  }
}
