package images

import (
	"encoding/json"
	"errors"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"

	"github.com/wbox-dev/wbox/builder/fault"
)

// AuthVariable is the environment variable that holds credentials in the form
// of Docker's config.json: {"auths":{"HOST":{"auth":"…"}}}.
const AuthVariable = "DOCKER_AUTH_CONFIG"

// DefaultKeychain finds credentials in the value of AuthVariable, and then
// where docker login, podman login and their credential helpers keep them.
func DefaultKeychain(authVariable string) authn.Keychain {
	if authVariable == "" {
		return authn.DefaultKeychain
	}
	return authn.NewMultiKeychain(variableKeychain(authVariable), authn.DefaultKeychain)
}

type variableKeychain string

// Resolve finds the credentials of a registry, or of a repository if they are
// filed under that. The value is never part of an error.
func (k variableKeychain) Resolve(r authn.Resource) (authn.Authenticator, error) {
	var config struct {
		Auths map[string]authn.AuthConfig `json:"auths"`
	}
	if err := json.Unmarshal([]byte(k), &config); err != nil {
		return nil, &fault.Problem{Class: fault.Usage, Field: AuthVariable, Why: "is not of the form of Docker's config.json", Err: errors.New("it is no JSON, or of another shape"),
			Fix: `write it as {"auths":{"HOST":{"auth":"BASE64 OF USER:PASSWORD"}}}, or unset it`}
	}
	keys := []string{r.String(), r.RegistryStr()}
	if r.RegistryStr() == name.DefaultRegistry {
		keys = append(keys, authn.DefaultAuthKey, "docker.io")
	}
	for _, key := range keys {
		if a, ok := config.Auths[key]; ok && a != (authn.AuthConfig{}) {
			return authn.FromConfig(a), nil
		}
	}
	return authn.Anonymous, nil
}
