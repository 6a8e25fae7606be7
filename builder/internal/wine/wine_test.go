package wine

import (
	"os"
	"strings"
	"testing"
)

func TestFindAsTheVariableSays(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(Variable, self)
	if got, err := Find(); err != nil || got != self {
		t.Errorf("got %q, %v", got, err)
	}
	for _, value := range []string{"none", "/no/such/wine"} {
		t.Setenv(Variable, value)
		if got, err := Find(); err == nil || !strings.Contains(err.Error(), Variable) {
			t.Errorf("%s: got %q, %v", value, got, err)
		}
	}
}
