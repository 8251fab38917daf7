package engine

import (
	"maps"
	"strings"
	"unicode"
)

// Product is what is sold.
type Product struct {
	Head
	Name         string
	Description  string
	Active       bool
	DefaultPrice string
	Metadata     map[string]string
	Updated      Time
}

// ProductFields is what a caller may set; nil leaves a field as it is.
type ProductFields struct {
	Name         *string
	Description  *string
	Active       *bool
	DefaultPrice *string
	Metadata     map[string]string
}

// maxProductID is the longest id that a caller may choose.
const maxProductID = 500

// CreateProduct makes a product, under the caller's id when there is one. A
// second product with that id is refused, which makes creation repeatable.
func (w *Account) CreateProduct(m Clock, id string, p ProductFields) (*Product, error) {
	if p.Name == nil || *p.Name == "" {
		return nil, absent("name")
	}
	if id == "" {
		id = m.token("prod_", idLength)
	}
	if len(id) > maxProductID || strings.ContainsFunc(id, unicode.IsControl) {
		return nil, invalid("id", "A product's id has at most %d bytes, none of them a control character.", maxProductID)
	}
	if w.Products.Get(id) != nil {
		return nil, invalid("id", "Product already exists.").withCode("resource_already_exists")
	}
	product := &Product{Head: w.numbered(m, id), Active: true, Updated: m.Now}
	if err := w.setProduct(product, p); err != nil {
		return nil, err
	}
	w.Products.Put(product)
	w.emit(m, "product.created", product)
	return product, nil
}

// UpdateProduct changes what is given.
func (w *Account) UpdateProduct(m Clock, id string, p ProductFields) (*Product, error) {
	product, err := Get(w.Products, "product", id)
	if err != nil {
		return nil, err
	}
	was := w.Render(product)
	if err := w.setProduct(product, p); err != nil {
		return nil, err
	}
	product.Updated = m.Now
	w.emitChange(m, "product.updated", was, product)
	return product, nil
}

func (w *Account) setProduct(product *Product, p ProductFields) error {
	set(&product.Name, p.Name)
	set(&product.Description, p.Description)
	set(&product.Active, p.Active)
	if p.DefaultPrice != nil {
		price, err := find(w.Prices, "price", "default_price", *p.DefaultPrice)
		if err != nil {
			return err
		}
		if price.Product != product.ID {
			return invalid("default_price", "The price %s belongs to another product.", price.ID)
		}
		product.DefaultPrice = price.ID
	}
	return merge(&product.Metadata, p.Metadata)
}

func set[T any](field *T, value *T) {
	if value != nil {
		*field = *value
	}
}

// maxPairs is Stripe's limit for metadata.
const maxPairs = 50

// merge sets the given pairs of metadata; an empty value takes its pair away, and an
// empty key all that were there.
func merge(metadata *map[string]string, given map[string]string) error {
	if len(given) == 0 {
		return nil
	}
	merged := make(map[string]string, len(*metadata)+len(given))
	if _, cleared := given[""]; !cleared {
		maps.Copy(merged, *metadata)
	}
	for key, value := range given {
		if value == "" {
			delete(merged, key)
		} else {
			merged[key] = value
		}
	}
	if len(merged) > maxPairs {
		return invalid("metadata", "You can have up to %d metadata keys, and this object would have %d.", maxPairs, len(merged))
	}
	*metadata = merged
	return nil
}
