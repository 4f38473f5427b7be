// Owns the page around the panel's script: content security policy with a nonce, no remote content, no inline style.
import { randomBytes } from 'node:crypto';

export interface PageParts { cspSource: string; script: string; style: string; where: 'side' | 'beside' }

export function pageHtml(parts: PageParts, nonce = randomBytes(16).toString('base64url')): string {
  const policy = [
    "default-src 'none'", `style-src ${parts.cspSource}`, `script-src 'nonce-${nonce}'`, "img-src 'none'", "connect-src 'none'", "form-action 'none'",
  ].join('; ');
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="stylesheet" href="${parts.style}">
<title>Odyssey</title>
</head>
<body data-where="${parts.where}">
<main id="panel"></main>
<script nonce="${nonce}" src="${parts.script}"></script>
</body>
</html>`;
}
