package spec

import _ "embed"

//go:generate go run ./internal/schemagen

//go:embed schema.json
var schema string

// Schema returns the JSON schema (draft 7) of box files, for editors.
func Schema() string { return schema }
