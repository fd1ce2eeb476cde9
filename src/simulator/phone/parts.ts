import type { Fields } from "../json.ts";

/** How the platform hands over what it knows of the device, if the owner of the agent asked for it. */
export type VariablesForm = "none" | "object" | "list";

export interface DeviceFacts {
  readonly pushId: string;
  readonly kind: DeviceKind;
}

/** A phone's id looks like a UUID; that of the desktop app does not. Nothing else tells them apart. */
export type DeviceKind = "mobile" | "desktop";

export const textPart = (text: string): Fields => ({ kind: "text", text });

export const dataPart = (data: Fields): Fields => ({ kind: "data", data });

export const filePart = (file: { readonly name: string; readonly mimeType: string; readonly uri: string }): Fields => ({
  kind: "file",
  file,
});

export interface DeviceEvent {
  readonly namespace: string;
  readonly name: string;
  readonly payload: Fields;
}

/** What a device reports is a message of data alone. */
export const eventPart = ({ name, namespace, payload }: DeviceEvent): Fields =>
  dataPart({ events: [{ header: { namespace, name }, payload }] });

/** The tap on a notification whose content is still with the agent. */
export const triggerEvent = (pushDataId: string): DeviceEvent => ({
  namespace: "Common",
  name: "Trigger",
  payload: { dataMap: { pushDataId } },
});

/** The outcome of something the agent had the device do. */
export const executionResult = (intentName: string, outputs: Fields): DeviceEvent => ({
  namespace: "Common",
  name: "UploadExeResult",
  payload: { intentName, outputs },
});

/** An object on devices, a list of objects in the documents. */
export function variableParts(form: VariablesForm, device: DeviceFacts): readonly Fields[] {
  if (form === "none") return [];
  const facts = {
    push_id: device.pushId,
    device_type: device.kind === "mobile" ? "phone" : "2in1",
    app_ver: "11.4.2.300",
    sdk_api_version: "20",
  };
  const systemVariables = form === "object" ? facts : Object.entries(facts).map(([name, value]) => ({ [name]: value }));
  return [dataPart({ variables: { systemVariables } })];
}
