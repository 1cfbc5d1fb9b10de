"""What a tensor is and answers, besides its values: layout, leaves, text, devices, torch's older names."""
