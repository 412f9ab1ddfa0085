//! A document to text and pictures
