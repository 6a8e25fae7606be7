package images

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"syscall"

	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"github.com/wbox-dev/wbox/builder/fault"
)

// explain makes of an error about a registry what the user can mend. Credentials
// are part of none of these errors; go-containerregistry blacks out queries.
func (c *Client) explain(err error, field, value string) error {
	var p *fault.Problem
	var answer *transport.Error
	var busy *busyError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &p):
		return err
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded) && !isTimeout(err):
		return fmt.Errorf("copying %s: %w", value, err)
	}
	p = &fault.Problem{Class: fault.Network, Field: field, Value: value, Err: err}
	switch {
	case errors.As(err, &busy):
		p.Why, p.Fix = "is in a registry that is busy", "try again later (what is copied stays copied), or allow more with --retry-budget"
	case errors.As(err, &answer):
		explainAnswer(p, answer)
	case isCertificate(err):
		p.Why, p.Fix = "is in a registry whose certificate is not trusted", "name the certificate of its authority with --extra-ca FILE"
	case errors.Is(err, http.ErrSchemeMismatch), isRecord(err):
		p.Why, p.Fix = "is in a registry that has no TLS", "check its port, or say --plain-http HOST:PORT"
	case errors.Is(err, syscall.ENOSPC):
		p.Class, p.Why, p.Fix = fault.Host, "could not be kept: the disk is full", "make room, or name another folder with --store"
	case errors.Is(err, errContent):
		p.Class, p.Why, p.Fix = fault.Input, "was refused", "that registry's copy is damaged, or something between you and it changes what it sends"
	default:
		p.Why, p.Fix = "could not be reached", "check the registry's name, the network and proxies"
	}
	return p
}

// explainAnswer explains what a registry refused.
func explainAnswer(p *fault.Problem, answer *transport.Error) {
	code := transport.ErrorCode("")
	if len(answer.Errors) > 0 {
		code = answer.Errors[0].Code
	}
	switch s := answer.StatusCode; {
	case s == http.StatusUnauthorized, s == http.StatusForbidden, code == transport.UnauthorizedErrorCode, code == transport.DeniedErrorCode:
		host := "REGISTRY"
		if answer.Request != nil {
			host = answer.Request.URL.Host
		}
		p.Class, p.Why = fault.Input, "is in a registry that wants another login, or does not exist there"
		p.Fix = "run docker login " + host + ", or set " + AuthVariable
	case code == transport.ManifestBlobUnknownErrorCode:
		p.Class, p.Why, p.Fix = fault.Input, "is refused by a registry that wants every layer, those that may not be distributed too", "use --foreign-layers copy, or --platform without windows"
	case s == http.StatusNotFound:
		p.Class, p.Why, p.Fix = fault.Input, "is not complete: something that it lists is not there", "use another version, or only some --platform"
	case s == http.StatusTooManyRequests:
		p.Why, p.Fix = "is in a registry that is busy", "try again later (what is copied stays copied), or allow more with --retry-budget"
	case s == http.StatusInsufficientStorage:
		p.Why, p.Fix = "is in a registry that is full", "make room there"
	case s >= 500:
		p.Why, p.Fix = "is in a registry that does not work", "try again later, or ask who runs it"
	default:
		p.Why, p.Fix = "was refused by the registry", "ask who runs it"
	}
}

func isCertificate(err error) bool {
	var unknown x509.UnknownAuthorityError
	var hostname x509.HostnameError
	var invalid x509.CertificateInvalidError
	var verify *tls.CertificateVerificationError
	return errors.As(err, &unknown) || errors.As(err, &hostname) || errors.As(err, &invalid) || errors.As(err, &verify)
}

func isRecord(err error) bool {
	var record tls.RecordHeaderError
	return errors.As(err, &record)
}

func isTimeout(err error) bool {
	var n net.Error
	return errors.As(err, &n) && n.Timeout()
}
