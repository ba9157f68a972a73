package steps

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"os"
	"strings"
)

// Login is how a client comes in. Without a mechanism its certificate decides.
type Login struct {
	Name, Server, Protocol, Mechanism, User, Password, Token, Ca, Certificate, Key string
}

// Logins does something for each login that a file lists.
func Logins(file string, work func(Login) error) {
	text, err := os.ReadFile(file)
	if err != nil {
		panic(err)
	}
	var logins []Login
	if err := json.Unmarshal(text, &logins); err != nil {
		panic(err)
	}
	for _, login := range logins {
		Step(login.Name, func() error { return work(login) })
	}
}

// TLS returns what a client trusts and shows; nil without TLS.
func (login Login) TLS() *tls.Config {
	if !strings.HasSuffix(login.Protocol, "SSL") {
		return nil
	}
	text, err := os.ReadFile(login.Ca)
	if err != nil {
		panic(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(text)
	config := &tls.Config{RootCAs: pool, ServerName: "localhost"}
	if login.Certificate != "" {
		certificate, err := tls.LoadX509KeyPair(login.Certificate, login.Key)
		if err != nil {
			panic(err)
		}
		config.Certificates = []tls.Certificate{certificate}
	}
	return config
}
