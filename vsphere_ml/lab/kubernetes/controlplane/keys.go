package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"os"
	"time"
)

// kubeletClient names the files by which the API server signs in at nodes: nobody else gets into their containers.
const kubeletClient = "kubelet-client"

// writeKeys makes the key that service accounts' tokens are signed with, and what the API server has for nodes.
func (p *plane) writeKeys() error {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return err
	}
	return errors.Join(
		p.writePEM("service-account.key", "RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(key)), p.writeKubeletClient())
}

func (p *plane) writeKubeletClient() error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "kube-apiserver-kubelet-client"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().AddDate(1, 0, 0),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}, IsCA: true, BasicConstraintsValid: true,
	}
	made, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return err
	}
	text, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	return errors.Join(
		p.writePEM(kubeletClient+".crt", "CERTIFICATE", made), p.writePEM(kubeletClient+".key", "EC PRIVATE KEY", text))
}

func (p *plane) writePEM(name, kind string, content []byte) error {
	return os.WriteFile(p.path(name), pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: content}), clientPrivate)
}
