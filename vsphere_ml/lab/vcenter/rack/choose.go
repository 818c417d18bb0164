package rack

// Fit is the first of the hosts on which the request fits now. When there is none it says why, host by host.
func (r *Rack) Fit(hosts []string, request Request) (string, []*Refusal) {
	var refusals []*Refusal
	for _, name := range hosts {
		refusal := r.Try(name, request)
		if refusal == nil {
			return name, nil
		}
		refusals = append(refusals, refusal)
	}
	return "", refusals
}

// BookAny books on the first of the hosts that has room, so that nobody can come between choice and booking.
func (r *Rack) BookAny(hosts []string, request Request) ([]Assignment, string, []*Refusal) {
	var refusals []*Refusal
	for _, name := range hosts {
		got, refusal := r.Book(name, request)
		if refusal == nil {
			return got, name, nil
		}
		refusals = append(refusals, refusal)
	}
	return nil, "", refusals
}
