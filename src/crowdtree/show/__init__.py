"""What people look at: pictures, reports and saved results."""
