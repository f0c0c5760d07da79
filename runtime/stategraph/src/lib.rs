//! Converges many dependent things inside one resource.
