package guest

import (
	"fmt"
	"io"
	"log/slog"
)

// Secret is a text that never shows itself: whatever the verb, in whatever
// struct, it prints as "[redacted]". Use string(s) where it is really meant.
type Secret string

const redacted = "[redacted]"

// Format implements fmt.Formatter.
func (Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, redacted) }

// LogValue implements slog.LogValuer.
func (Secret) LogValue() slog.Value { return slog.StringValue(redacted) }
